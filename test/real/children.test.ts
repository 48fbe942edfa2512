import { readFileSync } from 'node:fs';
import test from 'ava';
import { Program } from '../support/program.ts';
import { until } from '../support/wait.ts';

const linux = process.platform === 'linux' ? test : test.skip;

function runs(pid: number): boolean {
  try {
    // A zombie whose new parent does not reap it has ended all the same.
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

linux('what a test has started, and what that has started, ends also when the test process is killed', async (t) => {
  const program = new Program('test/support/run-children.ts', []);
  const [, child, grandchild] = await program.printed(/started (\d+) (\d+)/);
  const pids = [Number(child), Number(grandchild)];
  t.deepEqual(pids.map(runs), [true, true]);
  program.end('SIGKILL');
  await until(() => !pids.some(runs), 'both to end');
  t.pass();
});
