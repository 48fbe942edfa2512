import test from 'ava';
import { oneChangeAtATime } from '../support/change-history.ts';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { until } from '../support/wait.ts';

async function three(): Promise<TestElastic> {
  const cluster = new TestElastic();
  const flags = ['--ideal-cluster-size', '3'];
  await (await cluster.add({ flags })).ready();
  await cluster.add({ flags });
  await cluster.add({ flags });
  await cluster.settled(3);
  return cluster;
}

test.serial('an agent that stalls for longer than its lease is missed, changes nothing, and is back', async (t) => {
  const cluster = await three();
  t.teardown(() => cluster.destroy());
  const [, h2] = cluster.hosts;
  if (!h2) return t.fail();
  const before = await cluster.settled(3);
  h2.signal('SIGSTOP');
  const remote = cluster.remote();
  const rowOf = async () => (await remote.status()).rows.find(({ host }) => host === 'h2');
  // Its etcd goes on: that member is left alone, however long its agent is gone.
  await until(async () => (await rowOf())?.leaseAgeS === undefined, 'its lease to end', CHANGE_PATIENCE_MS);
  t.is((await rowOf())?.role, 'voter');
  h2.signal('SIGCONT');
  await until(async () => (await rowOf())?.leaseAgeS !== undefined, 'it to volunteer again', CHANGE_PATIENCE_MS);
  const after = await cluster.settled(3, 'again');
  t.deepEqual(
    after.rows.map(({ memberId, role }) => [memberId, role]),
    before.rows.map(({ memberId, role }) => [memberId, role]),
  );
  await oneChangeAtATime(t, cluster);
});

test.serial(
  'a controller that is stopped in the middle of a change: the next one ends it, and it does no harm later',
  async (t) => {
    const cluster = await three();
    t.teardown(() => cluster.destroy());
    const before = await cluster.settled(3);
    const controller = cluster.hosts.find(({ name }) => name === before.controller);
    if (!controller) return t.fail();
    const remote = cluster.remote();
    await remote.resize(1);
    await until(
      () => /^record: remove .*1 voter is wanted/m.test(controller.stderr),
      'the first change to be recorded',
    );
    controller.signal('SIGSTOP');
    const during = await until(
      async () => {
        const status = await remote.status();
        return status.controller !== controller.name && status;
      },
      'another controller',
      CHANGE_PATIENCE_MS,
    );
    t.true(during.quorum);
    controller.signal('SIGCONT');
    const after = await cluster.settled(1, 'and a learner');
    t.is(after.rows.length, 3);
    const changes = await oneChangeAtATime(t, cluster);
    t.true(changes.some(({ kind, cause }) => kind === 'remove' && cause === 'shrink'));
  },
);
