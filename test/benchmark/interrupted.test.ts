/** The benchmark's clusters when it is interrupted. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { bindToThisProcess, temporaryFolder } from '../support/children.ts';
import { Program } from '../support/program.ts';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../benchmarks/main.ts', import.meta.url));
/** It compiles first, on a machine that may have other things to do. */
const BOUND_MS = 240_000;

test('an elastic cluster that is measured ends with the run that is interrupted', async (t) => {
  const folder = temporaryFolder('bench-tmp-');
  const args = ['--quick', '--fsync', '--only', 'elastic', '--contestants', 'mirror', '--out', join(folder, 'out')];
  const bench = new Program(MAIN, args, { TMPDIR: folder });
  bindToThisProcess(bench.child);
  const running = () =>
    execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(`-dir=${folder}`) || line.includes(`-dir ${folder}`));
  const isSoFar = () => bench.stderr.includes('restart of an only one') || bench.ended !== undefined;
  await until(isSoFar, 'its second step', BOUND_MS);
  t.is(bench.ended, undefined, bench.stderr);
  await until(() => running().length > 1, 'a cluster beside the other etcd');
  bench.end('SIGINT');
  t.is(await bench.exit(BOUND_MS), 130, bench.stderr);
  t.deepEqual(running(), []);
  t.deepEqual(
    readdirSync(folder).filter((name) => /^(etcd-bench|by-hand|ours|elastic-test)-/.test(name)),
    [],
  );
});
