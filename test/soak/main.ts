/** npm run soak -- --minutes M [--seed S] [--services N] [--watchers N] [--out FILE-WITHOUT-EXTENSION] */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { FULL_SIZE } from './plan.ts';
import { asMarkdown, makeReport } from './report.ts';
import { Soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    services: { type: 'string', default: String(FULL_SIZE.services) },
    watchers: { type: 'string', default: String(FULL_SIZE.watchers) },
    out: { type: 'string', default: '.soak/report' },
  },
});

function positive(name: 'minutes' | 'seed' | 'services' | 'watchers', isWhole: boolean): number {
  const number = Number(values[name]);
  if (number > 0 && (!isWhole || Number.isSafeInteger(number))) return number;
  console.error(`--${name} takes a ${isWhole ? 'whole ' : ''}number above 0, got ${values[name]}`);
  process.exit(2);
}

function commitNow(): string {
  const git = (...args: string[]) => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim() ?? '';
  return `${git('rev-parse', '--short=12', 'HEAD')}${git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes'}`;
}

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());

const soak = new Soak({
  minutes: positive('minutes', false),
  seed: positive('seed', true),
  size: { ...FULL_SIZE, services: positive('services', true), watchers: positive('watchers', true) },
  signal: stop.signal,
  say: (line) => process.stderr.write(`${line}\n`),
});
process.on('unhandledRejection', (error) => soak.judge?.violate('soak', `unhandled rejection: ${String(error)}`));

const startedAt = new Date().toISOString();
const commit = commitNow();
console.error(`seed ${soak.options.seed}, ${soak.options.minutes} minutes`);
await soak.run();
const report = makeReport(soak, commit, startedAt);
mkdirSync(dirname(values.out), { recursive: true });
writeFileSync(`${values.out}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
writeFileSync(`${values.out}.md`, asMarkdown(report));
console.log(asMarkdown(report));
console.error(`written to ${values.out}.md and ${values.out}.json`);
if (report.isInterrupted) process.exitCode = 130;
else process.exitCode = report.violations.length === 0 ? 0 : 1;
