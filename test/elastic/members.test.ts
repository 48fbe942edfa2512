import { existsSync, readdirSync } from 'node:fs';
import test from 'ava';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';

/** Three voters, ready. */
async function three(flags: readonly string[] = []): Promise<TestElastic> {
  const cluster = new TestElastic();
  await (await cluster.add({ flags })).ready();
  await cluster.add({ flags });
  await cluster.add({ flags });
  await cluster.settled(3, 'at first');
  return cluster;
}

test.serial(
  'a follower that dies for good is replaced by a new host, and one voter fewer is never enough',
  async (t) => {
    const cluster = await three();
    t.teardown(() => cluster.destroy());
    const [h1, h2, h3] = cluster.hosts;
    if (!h1 || !h2 || !h3) return t.fail();
    await h3.crash();
    const remote = cluster.remote();
    const degraded = await until(async () => {
      const status = await remote.status();
      return status.blocked.some(({ what }) => what.includes('h3 is dead')) && status;
    }, 'h3 to be given up');
    t.is(degraded.canStand, 0);
    t.is(degraded.rows.find(({ host }) => host === 'h3')?.role, 'dead');
    t.false(degraded.healthy);

    await cluster.add();
    const healed = await cluster.settled(3, 'after the replacement');
    t.deepEqual([...healed.wanted.voters].sort(), ['h1', 'h2', 'h4']);

    // It comes back with its old folder: that is put aside, and it is a volunteer like any other.
    cluster.restart(h3);
    await h3.ready();
    await until(
      async () => (await remote.status()).rows.some(({ host, role }) => host === 'h3' && role === 'learner'),
      'h3 to be the spare',
    );
    t.true(readdirSync(h3.dataDir).some((name) => name.startsWith('removed-')));
  },
);

test.serial('a member whose folder was wiped joins anew, under its name, without waiting to be dead', async (t) => {
  const cluster = await three();
  t.teardown(() => cluster.destroy());
  const [, , h3] = cluster.hosts;
  if (!h3) return t.fail();
  const before = (await cluster.settled(3)).rows.find(({ host }) => host === 'h3')?.memberId;
  await h3.crash();
  h3.wipe();
  cluster.restart(h3);
  await h3.ready();
  const after = await until(
    async () => {
      const row = (await cluster.settled(3)).rows.find(({ host }) => host === 'h3');
      return row?.memberId !== before && row;
    },
    'h3 to have a new member id',
    CHANGE_PATIENCE_MS,
  );
  t.is(after.role, 'voter');
  t.notRegex(h3.stderr, /took over etcd|panicked/);
});

for (const [which, index] of [
  ['founded the cluster', 0],
  ['joined it', 1],
] as const) {
  test.serial(
    `a member whose folder is wiped under it never runs again under its old id: one that ${which}`,
    async (t) => {
      const cluster = await three();
      t.teardown(() => cluster.destroy());
      const host = cluster.hosts[index];
      if (!host?.etcdPid) return t.fail();
      const before = await cluster.settled(3);
      const idOf = ({ rows }: typeof before) => rows.find((row) => row.host === host.name)?.memberId;
      host.wipe();
      process.kill(host.etcdPid, 'SIGKILL');
      const after = await until(
        async () => {
          const status = await cluster.settled(3);
          return idOf(status) !== idOf(before) && status;
        },
        `${host.name} to have a new member id`,
        CHANGE_PATIENCE_MS,
      );
      t.is(after.clusterId, before.clusterId);
      t.regex(host.stderr, /the data of member [0-9a-f]+ is gone/);
      t.notRegex(host.stderr, /panicked/);
    },
  );
}

test.serial('when its agent is killed, its etcd serves on and is taken over by the next agent', async (t) => {
  const cluster = await three();
  t.teardown(() => cluster.destroy());
  const [h1] = cluster.hosts;
  if (!h1) return t.fail();
  const pid = h1.etcdPid;
  await h1.killAgent();
  t.is(h1.etcdPid, pid);
  await etcdctl(h1.clientUrl, 'put', '/still', 'served');
  cluster.restart(h1);
  await h1.ready();
  t.is(h1.etcdPid, pid);
  await cluster.settled(3, 'with the adopted one');
});

test.serial('a host that leaves is removed, leaves its data aside, and the leader moves before it goes', async (t) => {
  const cluster = await three(['--min-voters', '1']);
  t.teardown(() => cluster.destroy());
  const leader = (await cluster.settled(3)).rows.find((row) => row.leader);
  const host = cluster.hosts.find(({ name }) => name === leader?.host);
  if (!host) return t.fail();
  host.signal('SIGINT');
  t.is(await host.ended(), 130);
  t.regex(host.stderr, /was removed: its data is kept/);
  // Whoever was its client goes elsewhere before it does, and nothing is amiss.
  t.regex(host.stderr, /^going to another member: the cluster lists .* no more$/m);
  for (const { stderr } of cluster.hosts) t.notRegex(stderr, /out of reach/);
  t.false(existsSync(`${host.dataDir}/etcd`));
  t.is(host.etcdPid, undefined);
  const status = await cluster.settled(1, 'and a learner');
  t.false(status.rows.some((row) => row.host === host.name));
});

test.serial('the last member is never removed: it stops and keeps its data', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  await h1.ready();
  await etcdctl(h1.clientUrl, 'put', '/kept', 'value');
  h1.signal('SIGINT');
  t.is(await h1.ended(), 130);
  t.true(existsSync(`${h1.dataDir}/etcd/member/wal`));
  cluster.restart(h1);
  await h1.ready();
  t.regex(await etcdctl(h1.clientUrl, 'get', '/kept'), /value/);
});

test.serial('a learner whose host dies while it joins is put away, and the next host has its turn', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add({ flags: ['--ideal-cluster-size', '1'] });
  await h1.ready();
  const { path, reached } = cluster.etcdThatHangs();
  const h2 = await cluster.add({ flags: ['--etcd-path', path] });
  await h2.ready();
  await until(reached, 'the learner to be added and its etcd to be told to run');
  t.regex(await etcdctl(h1.clientUrl, 'member', 'list'), /unstarted.*true/);
  await h2.crash();
  await cluster.add();
  const status = await until(
    async () => {
      const { rows, healthy } = await cluster.remote().status();
      return healthy && rows.find(({ host, role }) => host === 'h3' && role === 'learner');
    },
    'h3 to be the learner',
    CHANGE_PATIENCE_MS,
  );
  t.truthy(status.memberId);
  t.is((await cluster.settled(1, 'and a learner')).rows.filter(({ memberId }) => memberId !== undefined).length, 2);
});

test.serial('a size that is none is refused by the command, and changes nothing where etcdctl wrote it', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add({ flags: ['--ideal-cluster-size', '3'] });
  await h1.ready();
  const remote = cluster.remote();
  for (const size of [0, -1, 70_000, 2.5, Number.NaN])
    await t.throwsAsync(remote.resize(size), { code: 'INVALID_OPTION' });
  await etcdctl(h1.clientUrl, 'put', '/_elastic/chooser/dynamicsize/idealclustersize', 'five');
  await until(() => h1.stderr.includes('"five"'), 'a warning about it');
  t.is((await remote.status()).wanted.voters.length, 1);
});
