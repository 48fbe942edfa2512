import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';

/** Seconds between two hosts that come back, more than --dead-after. After a power cut it may be a minute: RETURN_GAP=40. */
const GAP_S = Number(process.env.RETURN_GAP ?? 4);

test.serial('five hosts stop at once and come back one after the other: the same members, the same data', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  await h1.ready();
  for (let count = 2; count <= 5; count++) await cluster.add();
  const membersOf = (status: Awaited<ReturnType<typeof cluster.settled>>) =>
    status.rows.map(({ host, memberId }) => `${host} ${memberId}`);
  const before = await cluster.settled(5, 'at first');
  await etcdctl(h1.clientUrl, 'put', '/kept', 'value');

  for (const host of cluster.hosts) host.signal('SIGTERM');
  t.deepEqual(await Promise.all(cluster.hosts.map((host) => host.ended())), [143, 143, 143, 143, 143]);
  t.deepEqual(
    cluster.hosts.flatMap((host) => host.etcdPid ?? []),
    [],
  );

  for (const [index, host] of cluster.hosts.entries()) {
    if (index > 0) await sleep(GAP_S * 1_000);
    // Two of five are no quorum: whoever is there waits, however long it takes.
    if (index === 2) {
      const ready = cluster.hosts.slice(0, 2).filter(({ stdout }) => stdout.includes('ready'));
      t.deepEqual(ready, []);
    }
    cluster.restart(host);
    await until(() => host.etcdPid, `the etcd of ${host.name} to run`);
  }
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  const after = await cluster.settled(5, 'again');
  t.is(after.clusterId, before.clusterId);
  t.deepEqual(membersOf(after), membersOf(before));
  t.regex(await etcdctl(h1.clientUrl, 'get', '/kept'), /value/);
});

test.serial('one unit file fits every host: the same seeds, one of which is the host itself', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  for (let count = 1; count <= 3; count++) await cluster.prepare();
  const [h1, h2, h3] = cluster.hosts;
  if (!h1 || !h2 || !h3) return t.fail();
  const seeds = cluster.hosts.map(({ clientUrl }) => clientUrl);
  // Whoever is not the first waits for it, so the order does not matter.
  cluster.restart(h2, { seeds });
  cluster.restart(h3, { seeds });
  cluster.restart(h1, { seeds, flags: ['--bootstrap'] });
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  const { clusterId } = await cluster.settled(3);

  // What was for the first time only may stay in the file: it founds nothing where there is a cluster.
  await Promise.all(cluster.hosts.map((host) => host.stop()));
  for (const host of cluster.hosts) cluster.restart(host, { seeds, flags: ['--bootstrap'] });
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  t.is((await cluster.settled(3, 'again')).clusterId, clusterId);

  await h2.crash();
  h2.wipe({ state: true });
  cluster.restart(h2, { seeds, flags: ['--bootstrap'] });
  await h2.ready();
  t.is((await cluster.settled(3, 'with a new disk')).clusterId, clusterId);
});

test.serial('three hosts that are wanted to be five are three, and four are three and a learner', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const flags = ['--ideal-cluster-size', '5'];
  await (await cluster.add({ flags })).ready();
  await cluster.add({ flags });
  await cluster.add({ flags });
  const three = await cluster.settled(3);
  t.is(three.idealSize, 5);
  t.deepEqual([...three.wanted.voters].sort(), ['h1', 'h2', 'h3']);
  await cluster.add({ flags });
  await until(
    async () => {
      const { rows, converged } = await cluster.settled(3);
      return converged && rows.some(({ host, role }) => host === 'h4' && role === 'learner');
    },
    'h4 to be the spare',
    CHANGE_PATIENCE_MS,
  );
});
