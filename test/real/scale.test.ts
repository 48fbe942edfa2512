import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Ephemeral, WatchOptions } from '../../src/index.ts';
import type { CountingStore } from '../support/counting-store.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { type Seen, see } from '../support/listings.ts';
import { realWorld, Space } from '../support/space.ts';
import { until } from '../support/wait.ts';

let etcd: EtcdProcess;
test.before(async () => {
  etcd = await startEtcd();
});
test.after.always(() => etcd?.destroy());

interface Watcher {
  readonly client: Ephemeral;
  readonly traffic: CountingStore;
  readonly seen: Seen;
}

async function watcher(t: ExecutionContext, space: Space, options: Partial<WatchOptions> = {}): Promise<Watcher> {
  // Hundreds of clients in one process, and perhaps a busy machine: no lease is to end for want of a turn.
  const it = await space.connectCounted({ ttl: 20 });
  return { ...it, seen: see(t, it.client.list('/d', { missing: 'wait', ...options, watch: true })) };
}

/** Connects some at a time: hundreds at once would only wait for each other. */
async function many<T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  while (made.length < count) {
    const size = Math.min(50, count - made.length);
    made.push(...(await Promise.all(Array.from({ length: size }, (_, i) => make(made.length + i)))));
  }
  return made;
}

/** The one that watches the directory itself. */
const isMaster = (space: Space) => (it: Watcher) =>
  [...it.traffic.openWatches.values()].some(
    ({ target }) => 'prefix' in target && target.prefix === `${space.namespace}/d/`,
  );

test.serial(
  '150 put heartbeats reach 150 mirrored watchers as nothing at all, the master and a direct watcher once each (L4)',
  async (t) => {
    const count = 150;
    const space = await Space.open(t, realWorld(etcd));
    const keys = await many(count, async (i) => {
      const client = await space.connect({ ttl: 10, heartbeat: 'put' });
      return client.addKey(`/d/${i}`, String(i));
    });
    const watchers = await many(count, () => watcher(t, space));
    const direct = await many(3, () => watcher(t, space, { via: 'direct' }));
    for (const { seen } of [...watchers, ...direct])
      await until(() => seen.last?.children.length === count, 'each list');
    const master = await until(() => watchers.find(isMaster(space)), 'the master');
    const quiet = watchers.filter((it) => it !== master);
    // The round of questions that follows upon standing for election.
    await until(() => quiet.every(({ traffic }) => traffic.openWatches.size === 2), 'all to be in line');
    const versions = async () => (await space.keys('/d/')).reduce((sum, { version }) => sum + version, 0);
    const counts = () => ({
      quiet: quiet.map(({ traffic }) => traffic.eventMessages),
      calls: quiet.reduce((sum, { traffic }) => sum + traffic.calls, 0),
      master: master.traffic.events,
      direct: direct.map(({ traffic }) => traffic.events),
    });
    const [before, versionsBefore] = [counts(), await versions()];
    await sleep(10_000);
    const versionsAfter = await versions();
    await until(
      () => master.traffic.events - before.master >= versionsAfter - versionsBefore,
      'the master to hear all',
    );
    const after = counts();
    const refreshes = versionsAfter - versionsBefore;
    t.true(refreshes >= 2 * count, `${refreshes} refreshes`);
    t.deepEqual(after.quiet, before.quiet);
    for (const heard of [
      after.master - before.master,
      ...after.direct.map((events, i) => events - (before.direct[i] ?? 0)),
    ]) {
      t.true(Math.abs(heard - refreshes) <= count, `${heard} of ${refreshes}`);
    }
    // Those next in line look after the master now and then: that is no more with 150 than with 10.
    t.true(after.calls - before.calls <= count + 40, `${after.calls - before.calls} calls of all together`);
    t.true(keys.every(({ state }) => state === 'registered'));
  },
);

test.serial('400 that come at once and go at once are a few messages for each of 400 watchers (L2)', async (t) => {
  const count = 400;
  const space = await Space.open(t, realWorld(etcd));
  const leases = await many(count, () => space.grant(600));
  const watchers = await many(count, () => watcher(t, space));
  const master = await until(() => watchers.find(isMaster(space)), 'the master');
  await until(() => watchers.every((it) => it === master || it.traffic.openWatches.size === 2), 'all to be in line');
  await until(() => space.key('/_watcherDir/d//'), 'the first marker');
  let late: Watcher | undefined;
  for (const phase of ['join', 'leave'] as const) {
    const before = watchers.map(({ traffic }) => traffic.eventMessages);
    const startMs = performance.now();
    const changes = leases.map((lease, i) =>
      phase === 'join' ? space.put(`/d/${i}`, '', lease) : space.revoke(lease),
    );
    late ??= await watcher(t, space);
    await Promise.all(changes);
    const children = phase === 'join' ? count : 0;
    for (const { seen } of [...watchers, late])
      await until(() => seen.last?.children.length === children, `all to see the ${phase}`);
    const heard = watchers
      .filter((it) => it !== master)
      .map((it) => it.traffic.eventMessages - (before[watchers.indexOf(it)] ?? 0));
    // On a slow machine the storm takes long: then as many more as there is time for, one each 50 ms.
    const bound = 8 + (performance.now() - startMs) / 50;
    t.true(Math.max(...heard) <= bound, `${phase}: ${Math.max(...heard)} messages`);
    t.log(`${phase}: up to ${Math.max(...heard)} messages a watcher`);
  }
});
