/** The demo under test: its output, and what it leaves behind. */
import { readdirSync, readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { temporaryFolder } from './children.ts';
import { Program } from './program.ts';

/** Pauses for readers, in this fraction of their length. */
const PACE = '0.05';

export interface Demo extends Program {
  /** Its own processes and those they started. Linux only. */
  processes(): string[];
  folders(): string[];
}

let demos = 0;

/** Told apart by what all its processes inherit. */
export function startDemo(t: ExecutionContext, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Demo {
  demos += 1;
  const mark = `DEMO_UNDER_TEST=${process.pid}-${demos}`;
  const folder = temporaryFolder('demo-test-');
  const [name = '', value] = mark.split('=');
  const program = new Program('test/support/run-demo.ts', [PACE, ...args], { TMPDIR: folder, [name]: value, ...env });
  const processes = () =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${mark}\0`);
      } catch {
        return false;
      }
    });
  t.teardown(() => {
    program.end('SIGKILL');
    // What it left behind is the failure; the next test is not to suffer from it.
    for (const pid of processes()) process.kill(Number(pid), 'SIGKILL');
  });
  return Object.assign(program, {
    processes,
    folders: () => readdirSync(folder).filter((entry) => entry.startsWith('ephemeral-demo-')),
  });
}

export function nothingIsLeft(t: ExecutionContext, demo: Demo): void {
  t.deepEqual(demo.processes(), []);
  t.deepEqual(demo.folders(), []);
}
