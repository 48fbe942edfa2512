/** `npm run bench:report -- [RESULTS.json]`: makes the report and the README's figures from a run's results; the newest by default. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FOLDER } from './contestants.ts';
import { figures } from './report/figures.ts';
import { page } from './report/page.ts';
import type { Results } from './results.ts';

const RUN = /^\d{4}-\d{2}-\d{2}-[\d-]+\.json$/;

function newest(): string {
  const folder = join(FOLDER, 'results');
  const name = readdirSync(folder)
    .filter((file) => RUN.test(file))
    .sort()
    .at(-1);
  if (name === undefined) throw new Error(`there are no results in ${folder}: npm run bench`);
  return join(folder, name);
}

export function report(file: string): void {
  const results = JSON.parse(readFileSync(file, 'utf8')) as Results;
  const folder = dirname(file);
  writeFileSync(join(folder, 'report.html'), page(results));
  writeFileSync(join(folder, 'figures.md'), figures(results));
}

if (process.argv[1]?.endsWith('report.ts')) report(process.argv[2] ?? newest());
