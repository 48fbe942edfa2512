/** npm run simulate -- --seeds 50000 [--from N], or --seed N to see one in full. */
import { parseArgs } from 'node:util';
import { MUTATIONS, type MutationName } from './mutations.ts';
import { writeProgram } from './program.ts';
import { shrink, tell } from './shrink.ts';
import { simulate } from './simulate.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    without: { type: 'string' },
    failures: { type: 'string', default: '1' },
  },
});

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} takes a whole number, got ${text}`);
  process.exit(2);
}

if (values.without !== undefined && !(values.without in MUTATIONS)) {
  console.error(`--without takes one of ${Object.keys(MUTATIONS).join(', ')}`);
  process.exit(2);
}
const mutation = values.without === undefined ? undefined : MUTATIONS[values.without as MutationName];

/** The whole run of the shrunk program, and its story. */
async function show(seed: number): Promise<boolean> {
  const program = writeProgram(seed);
  const violation = await simulate(program, { mutation });
  if (!violation) return false;
  const shortest = await shrink({ program, violation }, { mutation });
  if (values.seed !== undefined) {
    const lines: string[] = [];
    await simulate(shortest.program, { mutation, lines });
    console.log(`${lines.join('\n')}\n`);
  }
  console.log(`${tell(shortest)}\n`);
  return true;
}

async function runMany(from: number, count: number, mayFail: number): Promise<number> {
  let failures = 0;
  const startMs = Date.now();
  const isTerminal = process.stderr.isTTY;
  for (let done = 0; done < count && failures < mayFail; done += 1) {
    const seed = from + done;
    if (await simulate(writeProgram(seed), { mutation })) {
      failures += 1;
      await show(seed);
    }
    if ((done + 1) % (isTerminal ? 100 : 5_000) !== 0) continue;
    const seconds = (Date.now() - startMs) / 1_000;
    const text = `${done + 1} of ${count} seeds, ${failures} failed, ${((seconds * 1_000) / (done + 1)).toFixed(1)} ms each`;
    process.stderr.write(isTerminal ? `\r${text}` : `${text}\n`);
  }
  if (isTerminal) process.stderr.write('\n');
  return failures;
}

if (values.seed !== undefined) {
  const seed = wholeNumber('seed', values.seed);
  const failed = await show(seed);
  if (!failed) console.log(`seed ${seed}: nothing is wrong`);
  process.exitCode = failed ? 1 : 0;
} else {
  const count = wholeNumber('seeds', values.seeds);
  const failures = await runMany(wholeNumber('from', values.from), count, wholeNumber('failures', values.failures));
  console.log(failures === 0 ? `${count} seeds, all is well` : `replay with: npm run simulate -- --seed N`);
  process.exitCode = failures === 0 ? 0 : 1;
}
