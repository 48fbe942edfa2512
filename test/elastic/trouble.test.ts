import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { listBackups } from '../../src/elastic/backup.ts';
import { heal } from '../../src/elastic/heal.ts';
import { CHANGE_PATIENCE_MS, TestElastic, type TestHost } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';

const run = promisify(execFile);
const COMMAND = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

function hostFlags(host: TestHost): string[] {
  const folders = ['--hostname', host.name, '--data-dir', host.dataDir];
  return [...folders, '--client-urls', host.clientUrl, '--server-urls', host.serverUrl];
}

function ephemeral(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(process.execPath, ['--import', 'tsx', COMMAND, ...args]);
}

test.serial(
  'two of three lost for good: the status says so, and recovery goes on with the third, to which the others come back',
  async (t) => {
    const cluster = new TestElastic();
    t.teardown(() => cluster.destroy());
    const h1 = await cluster.add();
    await h1.ready();
    const h2 = await cluster.add();
    const h3 = await cluster.add();
    await cluster.settled(3);
    await etcdctl(h1.clientUrl, 'put', '/kept', 'value');
    await Promise.all([h2.crash(), h3.crash()]);
    const remote = cluster.remote();
    const lost = await until(async () => {
      const status = await remote.status();
      return !status.quorum && status;
    }, 'the loss to be seen');
    t.is(lost.canStand, -1);
    t.regex(lost.blocked.map(({ todo }) => todo).join(), /ephemeral elastic recover/);

    await t.throwsAsync(ephemeral('elastic', 'recover', ...hostFlags(h1), '--yes'), { message: /FOLDER_IN_USE/ });
    await h1.stop();
    await t.throwsAsync(ephemeral('elastic', 'recover', ...hostFlags(h1)), { message: /--yes/ });
    const { stderr } = await ephemeral('elastic', 'recover', ...hostFlags(h1), '--yes');
    t.regex(stderr, /Not heard of: h2, h3/);
    cluster.restart(h1);
    await h1.ready();
    t.regex(await etcdctl(h1.clientUrl, 'get', '/kept'), /value/);
    const gone = await until(async () => {
      const rows = (await remote.status()).rows.filter(({ host }) => host !== 'h1');
      return rows.length === 2 && rows.every(({ role }) => role === 'dead') && rows;
    }, 'the others to be known for what they are');
    t.true(gone.every(({ problem }) => /is none any more/.test(problem ?? '')));
    h2.wipe();
    cluster.restart(h2);
    cluster.restart(h3);
    const healed = await cluster.settled(3, 'after the recovery');
    t.is(healed.clusterId, lost.clusterId);
    await t.throwsAsync(ephemeral('elastic', 'recover', ...hostFlags(h1), '--yes'), { message: /FOLDER_IN_USE/ });
  },
);

test.serial('under NOSPACE all is frozen and nobody restarted; the offered command heals it', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const flags = ['--quota-bytes', String(2 * 1024 * 1024)];
  const h1 = await cluster.add({ flags });
  await h1.ready();
  const pid = h1.etcdPid;
  const value = 'x'.repeat(100_000);
  await until(async () => {
    const failure = await etcdctl(h1.clientUrl, 'put', '/big', value).then(
      () => '',
      (error: unknown) => String(error),
    );
    return failure.includes('database space exceeded');
  }, 'the database to be full');
  const remote = cluster.remote();
  const full = await remote.status();
  t.deepEqual(full.alarms, ['NOSPACE']);
  t.regex(full.blocked.map(({ todo }) => todo).join(), /ephemeral elastic heal/);
  await heal(remote.admin, (await remote.look()).view, (line) => t.log(line));
  await etcdctl(h1.clientUrl, 'put', '/small', 'value');
  t.deepEqual((await remote.status()).alarms, []);
  t.is(h1.etcdPid, pid);
});

test.serial(
  'a backup is taken before a change; restored elsewhere, it is a cluster of its own with the same data',
  async (t) => {
    const cluster = new TestElastic();
    t.teardown(() => cluster.destroy());
    const h1 = await cluster.add();
    await h1.ready();
    await etcdctl(h1.clientUrl, 'put', '/kept', 'value');
    await cluster.add();
    const { clusterId } = await cluster.settled(1, 'and a learner');
    const backups = `${h1.stateDir}/backups`;
    const [backup] = await until(() => listBackups(backups).length > 0 && listBackups(backups), 'a backup');
    const h3 = await cluster.add({ flags: [] });
    await h3.ready();
    await h3.crash();
    await ephemeral('elastic', 'restore', `${backups}/${backup}`, ...hostFlags(h3), '--yes');
    cluster.restart(h3, { seeds: ['http://127.0.0.1:1'] });
    await h3.ready();
    t.regex(await etcdctl(h3.clientUrl, 'get', '/kept'), /value/);
    t.notRegex(h3.stderr, new RegExp(`cluster ${clusterId}.*belongs`));
  },
);

test.serial('a name that is taken by a living host is refused, and nothing is added', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  await h1.ready();
  const h2 = await cluster.add({ flags: ['--hostname', 'h1', '--start-timeout', '60'] });
  t.is(await h2.ended(), 1);
  t.regex(h2.stderr, /DUPLICATE_HOST/);
  t.is((await cluster.remote().status()).rows.length, 1);
});

test.serial('a host refuses another cluster than its own, ports in use, and an etcd that is none', async (t) => {
  const cluster = new TestElastic();
  const other = new TestElastic();
  t.teardown(() => Promise.all([cluster.destroy(), other.destroy()]).then(() => undefined));
  const h1 = await cluster.add();
  const stranger = await other.add();
  await Promise.all([h1.ready(), stranger.ready()]);
  const h2 = await cluster.add();
  await h2.ready();
  await h2.stop();
  h2.wipe();
  await h1.stop();
  cluster.restart(h2, { seeds: [stranger.clientUrl], flags: ['--start-timeout', '20'] });
  t.is(await h2.ended(), 1);
  t.regex(h2.stderr, /WRONG_CLUSTER/);

  const inUse = await other.add({ flags: ['--client-urls', stranger.clientUrl] });
  t.is(await inUse.ended(), 1);
  t.regex(inUse.stderr, /INVALID_OPTION: .* in use/);

  const noEtcd = await other.add({ flags: ['--etcd-path', '/nowhere/etcd'] });
  t.is(await noEtcd.ended(), 1);
  t.regex(noEtcd.stderr, /ETCD_PROCESS: cannot run \/nowhere\/etcd/);
});

test.serial('a host whose disk was exchanged does not found a second cluster', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  await h1.ready();
  await h1.crash();
  h1.wipe();
  cluster.restart(h1);
  t.is(await h1.ended(), 1);
  t.regex(h1.stderr, /CLUSTER_STATE: this host was a member of a cluster and has lost its data/);
});

test.serial('while one member is being restarted, the next one is not removed', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const flags = ['--dead-after', '600', '--min-voters', '1'];
  const h1 = await cluster.add({ flags });
  await h1.ready();
  const h2 = await cluster.add({ flags });
  const h3 = await cluster.add({ flags });
  await cluster.settled(3);
  await h2.crash();
  h3.signal('SIGINT');
  const remote = cluster.remote();
  await until(async () => {
    const { blocked } = await remote.status();
    return blocked.some(({ why }) => why.includes('h2 has not answered'));
  }, 'the leave to be held up');
  h3.signal('SIGINT');
  await until(() => h3.stderr.includes('it waits for'), 'the second ^C to be answered');
  t.is((await remote.status()).rows.find(({ host }) => host === 'h3')?.role, 'voter');
  cluster.restart(h2, { flags });
  t.is(await h3.ended(), 130);
  await until(
    async () => !(await remote.status()).rows.some(({ host }) => host === 'h3'),
    'h3 to be gone',
    CHANGE_PATIENCE_MS,
  );
});
