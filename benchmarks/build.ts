import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { BUILD, FOLDER } from './contestants.ts';

/** Compiles library and fleets as they are published. */
export function build(): void {
  rmSync(BUILD, { recursive: true, force: true });
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', join(FOLDER, 'tsconfig.json')], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the fleets do not compile:\n${stdout}`);
}
