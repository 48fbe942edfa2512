import test from 'ava';
import { MUTATIONS, type MutationName } from './mutations.ts';
import { writeProgram } from './program.ts';
import { shrink, tell } from './shrink.ts';
import { simulate } from './simulate.ts';

const SEEDS = 2_000;
const TIMEOUT_MS = 10 * 60_000;

/** For each safeguard a seed whose program breaks a promise without it. Found by `npm run simulate -- --without NAME`. */
const CAUGHT_BY: Record<MutationName, { readonly seed: number; readonly rule: string }> = {
  'mirror fence': { seed: 2, rule: 'M1' },
  'session fence': { seed: 99, rule: 'R3' },
  'ownership compares': { seed: 2, rule: 'R3' },
  'touched sets': { seed: 254, rule: 'L2' },
  'event cursor': { seed: 34, rule: 'L1' },
  relist: { seed: 37, rule: 'L1' },
};

test.serial(`every promise holds in ${SEEDS} seeded worlds full of faults`, async (t) => {
  t.timeout(TIMEOUT_MS);
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const program = writeProgram(seed);
    const violation = await simulate(program);
    if (violation) return t.fail(`npm run simulate -- --seed ${seed}\n${tell(await shrink({ program, violation }))}`);
  }
  t.pass();
});

test.serial('a seed replays exactly', async (t) => {
  for (const seed of [3, 14, 159]) {
    const [first, second]: string[][] = [[], []];
    await simulate(writeProgram(seed), { lines: first });
    await simulate(writeProgram(seed), { lines: second });
    t.true((first?.length ?? 0) > 50);
    t.deepEqual(first, second);
  }
});

for (const [name, { seed, rule }] of Object.entries(CAUGHT_BY)) {
  test.serial(`without its ${name} the library breaks ${rule}, and seed ${seed} shows it`, async (t) => {
    const program = writeProgram(seed);
    t.is(await simulate(program), undefined, 'with it all is well');
    const violation = await simulate(program, { mutation: MUTATIONS[name as MutationName] });
    t.is(violation?.rule, rule);
  });
}

test.serial('a failure shrinks to a story that still fails', async (t) => {
  const program = writeProgram(CAUGHT_BY['session fence'].seed);
  const options = { mutation: MUTATIONS['session fence'] };
  const violation = await simulate(program, options);
  if (!violation) return t.fail();
  const shortest = await shrink({ program, violation }, options);
  t.true(shortest.program.actions.length < program.actions.length / 2);
  t.is((await simulate(shortest.program, options))?.message, shortest.violation.message);
  t.regex(tell(shortest), /freeze p\d.*\n(.*\n)*.*broken: R3/);
});
