/** The benchmark on an etcd that is somebody else's. */
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { Etcd3 } from 'etcd3';
import { MEASUREMENTS } from '../../benchmarks/options.ts';
import { bindToThisProcess, temporaryFolder } from '../support/children.ts';
import { startEtcd } from '../support/etcd-process.ts';
import { Program } from '../support/program.ts';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../benchmarks/main.ts', import.meta.url));
/** It compiles first, on a machine that may have other things to do. */
const BOUND_MS = 240_000;
/** What starts clusters of its own has nothing to do with this one. */
const OF_THIS_ETCD = MEASUREMENTS.filter((name) => name !== 'elastic');
const FOREIGN = ['/services/web/somebody', '/bench-mark', '/_watcherDir/services/web//', 'no slash'];

interface Stage {
  readonly bench: Program;
  /** All keys touched since the stage was set. */
  readonly touched: Set<string>;
  kvs(): Promise<readonly string[]>;
}

/** An etcd in which others have keys, and a tiny run of the benchmark on it. */
async function stage(t: ExecutionContext, ...args: readonly string[]): Promise<Stage> {
  const etcd = await startEtcd();
  t.teardown(() => etcd.destroy());
  const client = new Etcd3({ hosts: etcd.endpoint });
  t.teardown(() => client.close());
  for (const key of FOREIGN) await client.put(key).value(`of ${key}`);
  const touched = new Set<string>();
  const watcher = await client.watch().prefix('').create();
  t.teardown(() => watcher.cancel());
  watcher.on('data', ({ events }) => {
    for (const { kv } of events) touched.add(kv.key.toString());
  });
  const out = temporaryFolder('bench-out-');
  const bench = new Program(MAIN, ['--quick', '--endpoints', etcd.endpoint, '--out', out, ...args]);
  bindToThisProcess(bench.child);
  return {
    bench,
    touched,
    kvs: async () => {
      const { kvs } = await client.getAll().exec();
      return kvs.map((kv) => `${kv.key} ${kv.mod_revision} ${kv.value}`);
    },
  };
}

function isOfARun(key: string): boolean {
  return /^\/bench-\d+-[a-z0-9]+\//.test(key);
}

test('a run on an etcd that is there touches only its own namespace, and removes it', async (t) => {
  const { bench, touched, kvs } = await stage(t, '--only', OF_THIS_ETCD.join(','));
  const before = await kvs();
  t.is(await bench.exit(BOUND_MS), 0, bench.stderr);
  t.true([...touched].some(isOfARun));
  t.deepEqual(
    [...touched].filter((key) => !isOfARun(key)),
    [],
  );
  t.deepEqual(await kvs(), before);
});

test('a run that is interrupted removes its namespace, too', async (t) => {
  const { bench, touched, kvs } = await stage(
    t,
    '--only',
    'storm',
    '--contestants',
    'mirror,etcd3',
    '--rounds',
    '1000',
  );
  const before = await kvs();
  await until(() => bench.stderr.includes('round 3 of') && [...touched].some(isOfARun), 'its third round', BOUND_MS);
  t.notDeepEqual(await kvs(), before);
  bench.end('SIGINT');
  t.is(await bench.exit(BOUND_MS), 130, bench.stderr);
  t.deepEqual(await kvs(), before);
  t.false(bench.stderr.includes('Error'), bench.stderr);
});
