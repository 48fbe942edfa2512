/**
 * `npm run bench:report -- [RESULTS.json]`: makes the report from a run's results, the newest by default, and puts its figures into
 * the README.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FOLDER } from './contestants.ts';
import { figures } from './report/figures.ts';
import { page } from './report/page.ts';
import type { Results } from './results.ts';

const RUN = /^\d{4}-\d{2}-\d{2}-[\d-]+\.json$/;
/** What lies between is generated. */
const GENERATED = /(<!-- figures:start -->\n)[\s\S]*?(<!-- figures:end -->)/;

function newest(): string {
  const folder = join(FOLDER, 'results');
  const name = readdirSync(folder)
    .filter((file) => RUN.test(file))
    .sort()
    .at(-1);
  if (name === undefined) throw new Error(`there are no results in ${folder}: npm run bench`);
  return join(folder, name);
}

function figuresOf(file: string): string {
  return figures(JSON.parse(readFileSync(file, 'utf8')) as Results, basename(file));
}

export function report(file: string): void {
  const folder = dirname(file);
  writeFileSync(join(folder, 'report.html'), page(JSON.parse(readFileSync(file, 'utf8')) as Results));
  writeFileSync(join(folder, 'figures.md'), figuresOf(file));
}

function publish(file: string): void {
  const readme = join(FOLDER, '..', 'README.md');
  const text = readFileSync(readme, 'utf8');
  // As a function: the figures are no pattern.
  const changed = text.replace(GENERATED, (_, start: string, end: string) => `${start}${figuresOf(file)}${end}`);
  writeFileSync(readme, changed);
}

if (process.argv[1]?.endsWith('report.ts')) {
  const file = process.argv[2] ?? newest();
  report(file);
  publish(file);
}
