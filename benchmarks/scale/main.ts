/** `npx tsx benchmarks/scale/main.ts`: simulates the mirror at up to a million children and writes what came out. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from '../build.ts';
import { BUILD, FOLDER } from '../contestants.ts';
import { machine } from '../environment.ts';
import { number } from '../report/format.ts';
import type { ChildrenRow, MarkerRow } from './simulate.ts';

interface Simulated {
  readonly children: readonly ChildrenRow[];
  readonly markers: readonly MarkerRow[];
}

build();
const program = join(BUILD, 'benchmarks', 'scale', 'simulate.js');
const { status, stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
if (status !== 0) throw new Error(stderr);
const simulated = JSON.parse(stdout) as Simulated;
const file = join(FOLDER, 'results', 'scale.json');
writeFileSync(file, `${JSON.stringify({ environment: machine(), ...simulated }, null, 2)}\n`);

function cells(row: object): string[] {
  return Object.values(row).map((value) => (typeof value === 'number' ? number(value) : String(value)));
}

for (const rows of [simulated.children, simulated.markers] as const) {
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map(cells)];
  process.stdout.write(`${lines.map((line) => line.join('\t')).join('\n')}\n\n`);
}
process.stdout.write(`wrote ${file}\n`);
