import test, { type ExecutionContext } from 'ava';
import type { Listing, WatchOptions } from '../../src/index.ts';
import { Seen } from '../support/listings.ts';
import { type MemoryClient, MemoryScene } from '../support/memory-clients.ts';

const TTL = 2;

/** Counts of a client's stats, by what follows `ephemeral.etcd.`. */
function countingStats() {
  const counts = new Map<string, number>();
  return {
    bumpSum: (name: string, n: number) => void counts.set(name, (counts.get(name) ?? 0) + n),
    bumpTime: () => ({ end: () => {} }),
    of: (name: string) => counts.get(`ephemeral.etcd.${name}`) ?? 0,
  };
}

interface Watcher extends MemoryClient {
  readonly seen: Seen;
  readonly stats: ReturnType<typeof countingStats>;
}

async function watcher(scene: MemoryScene, options: Partial<WatchOptions> = {}, candidate = true): Promise<Watcher> {
  const stats = countingStats();
  const it = await scene.connect({ ttl: TTL, stats, candidate });
  return { ...it, stats, seen: new Seen(it.client.list('/d', { missing: 'wait', ...options, watch: true })) };
}

/** Within an epoch revisions only rise, and only a higher epoch lets them fall (L1, L6). */
function assertOrdered(t: ExecutionContext, listings: readonly Listing[]): void {
  for (const [i, listing] of listings.entries()) {
    const before = listings[i - 1];
    if (!before) continue;
    t.true(listing.epoch > before.epoch || (listing.epoch === before.epoch && listing.revision >= before.revision));
  }
}

/** The mirror's master, and who stands next: the first in line is settled before the second comes. */
async function mirrored(scene: MemoryScene, options: Partial<WatchOptions> = {}) {
  const master = await watcher(scene, options);
  await scene.advance(0.5);
  const follower = await watcher(scene, options);
  await scene.advance(0.5);
  return { master, follower };
}

const FAULTS: Readonly<
  Record<string, readonly [begin: (s: MemoryScene, w: Watcher) => void, end: (s: MemoryScene, w: Watcher) => void]>
> = {
  'a partition': [(s, w) => s.server.partition(w.store), (s, w) => s.server.heal(w.store)],
  'a partition that ends in resets': [(s, w) => s.server.partition(w.store), (s, w) => s.server.heal(w.store, 'end')],
  'a dead connection': [(s, w) => s.server.partition(w.store), (s, w) => s.server.heal(w.store, 'silent')],
  'a stop of the store': [(s) => s.server.stop(), (s) => s.server.start()],
  'a member that stands still': [(s, w) => s.server.freeze(w.store), (s, w) => s.server.thaw(w.store)],
};

for (const via of ['mirror', 'direct'] as const) {
  for (const [name, [begin, end]] of Object.entries(FAULTS)) {
    test(`${via}: ${name}: the last known list stays, says that it is stale, and is right again after it (L2, L3)`, async (t) => {
      for (const isCompacted of [false, true]) {
        const scene = new MemoryScene();
        for (const child of ['a', 'b']) scene.put(`/d/${child}`);
        const { client: heart, seen, ...it } = await watcher(scene, { via });
        // A direct watcher notices by what else its process has with the store.
        await heart.addKey('/own', '');
        await scene.advance(3.1);
        scene.put('/d/c');
        await scene.settle();
        t.is(seen.names, 'a b c');
        begin(scene, { client: heart, seen, ...it });
        await scene.advance(TTL + 1.5);
        if (name !== 'a member that stands still') {
          t.is(seen.names, 'a b c');
          t.is(seen.last?.status, 'stale');
        }
        scene.remove('/d/a');
        scene.put('/d/d');
        scene.put('/d/e');
        scene.remove('/d/e');
        if (isCompacted) scene.server.compact();
        await scene.advance(20);
        if (name !== 'a member that stands still') t.is(seen.names, 'a b c');
        end(scene, { client: heart, seen, ...it });
        await scene.advance(TTL + 2);
        t.is(seen.names, 'b c d');
        t.is(seen.last?.status, 'live');
        assertOrdered(t, seen.listings);
        await heart.close();
      }
    });
  }

  test(`${via}: a list that was told nothing wrong is not read anew by an outage (L5)`, async (t) => {
    const scene = new MemoryScene();
    scene.put('/d/a');
    const { seen, store, stats, client } = await watcher(scene, { via });
    await client.addKey('/own', '');
    await scene.advance(3);
    const relists = stats.of('list.relists');
    scene.server.partition(store);
    await scene.advance(30);
    scene.put('/d/b');
    scene.server.heal(store, 'end');
    await scene.advance(3);
    t.is(seen.names, 'a b');
    t.is(stats.of('list.relists'), relists);
  });

  test(`${via}: a restore to an older state is a new epoch, a list read anew, and then followed (L6)`, async (t) => {
    const scene = new MemoryScene();
    scene.put('/d/old');
    const { seen } = await watcher(scene, { via });
    await scene.advance(2);
    const snapshot = scene.server.snapshot();
    for (let i = 0; i < 50; i++) scene.put(`/d/n${i}`);
    scene.remove('/d/old');
    await scene.advance(3_600);
    t.is(seen.last?.children.length, 50);
    const { epoch = 0, revision = 0 } = seen.last ?? {};
    scene.server.restore(snapshot);
    await scene.advance(3);
    t.is(seen.names, 'old');
    t.true((seen.last?.epoch ?? 0) > epoch);
    t.true((seen.last?.revision ?? 0) < revision);
    scene.put('/d/new');
    await scene.advance(1);
    t.is(seen.names, 'new old');
    assertOrdered(t, seen.listings);
  });

  test(`${via}: a wiped store is an empty list in a new epoch, which fills again`, async (t) => {
    const scene = new MemoryScene();
    const { seen, client } = await watcher(scene, { via });
    await client.addKey('/d/own', '');
    scene.put('/d/theirs');
    await scene.advance(3);
    scene.server.wipe();
    await scene.advance(TTL + 1);
    t.is(seen.names, 'own');
    scene.put('/d/theirs');
    await scene.advance(1);
    t.is(seen.names, 'own theirs');
  });

  test(`${via}: compactions at any moment lose nothing (L5)`, async (t) => {
    const scene = new MemoryScene({ delayMs: () => 3 }, 7);
    const connecting = watcher(scene, { via });
    await scene.advance(1);
    const { seen } = await connecting;
    const present = new Set<number>();
    for (let i = 0; i < 200; i++) {
      const child = Math.floor(scene.clock.random() * 8);
      if (present.delete(child)) scene.remove(`/d/${child}`);
      else {
        scene.put(`/d/${child}`);
        present.add(child);
      }
      if (i % 5 === 0) scene.server.compact();
      if (i % 37 === 0) scene.server.restart();
      await scene.advance(0.02 + 0.2 * scene.clock.random());
    }
    await scene.advance(5);
    t.is(seen.names, [...present].sort().join(' '));
    assertOrdered(t, seen.listings);
  });

  test(`${via}: every listing is the directory exactly as it was at its revision (L1)`, async (t) => {
    const scene = new MemoryScene({}, 3);
    const truth = new Map<number, string>();
    const note = () => {
      const names = scene.keys('/d/').map(({ key, value }) => `${key.slice(3)}=${Buffer.from(value)}`);
      truth.set(scene.server.model.header.revision, names.join(' '));
    };
    scene.server.onCommit(note);
    note();
    const { client } = await scene.connect({ ttl: TTL });
    const told: string[] = [];
    let last: Listing | undefined;
    client.list('/d', { watch: true, values: true, via, missing: 'wait' }).subscribe((listing) => {
      const names = [...listing.entries].map(([name, { value }]) => `${name}=${value}`).join(' ');
      told.push(names);
      if (truth.get(listing.revision) !== names)
        t.fail(`at ${listing.revision}: ${names}, not ${truth.get(listing.revision)}`);
      last = listing;
    });
    for (let i = 0; i < 300; i++) {
      const key = `/d/${Math.floor(scene.clock.random() * 5)}`;
      if (scene.clock.random() < 0.4) scene.remove(key);
      else scene.put(key, String(i));
      if (scene.clock.random() < 0.3) await scene.advance(0.1 * scene.clock.random());
    }
    await scene.advance(1);
    t.is(told.at(-1), truth.get(scene.server.model.header.revision) ?? [...truth.values()].at(-1));
    t.is(last?.status, 'live');
  });
}

test('an explicit leave that was seen counts, though the store has been lost since (L3)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  scene.put('/d/b');
  const { seen } = await watcher(scene, { via: 'direct' });
  await scene.settle();
  scene.remove('/d/a');
  await scene.settle();
  scene.server.stop();
  await scene.advance(60);
  t.deepEqual([seen.names, seen.last?.status], ['b', 'stale']);
});

test('staleAfter says after how long without the store a list is stale', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const { client } = await scene.connect({ ttl: TTL, staleAfter: 30 });
  const seen = new Seen(client.list('/d', { watch: true }));
  await scene.advance(1);
  scene.server.stop();
  await scene.advance(28);
  t.is(seen.last?.status, 'live');
  await scene.advance(3);
  t.is(seen.last?.status, 'stale');
});

for (const via of ['mirror', 'direct'] as const) {
  test(`${via}: after an outage a list says live only with what happened meanwhile, or when nothing did (L3)`, async (t) => {
    const scene = new MemoryScene({ delayMs: (kind) => (kind === 'event' ? 300 : 10) });
    const clients: MemoryClient[] = [];
    const opened = (async () => {
      for (let i = 0; i < 2; i += 1) clients.push(await scene.connect({ ttl: TTL }));
    })();
    await scene.advance(1);
    await opened;
    scene.put('/d/a');
    scene.put('/d/b');
    const seen: Seen[] = [];
    for (const { client } of clients) {
      // A direct watcher notices by what else its process has with the store.
      void client.addKey(`/own/${seen.length}`, '');
      seen.push(new Seen(client.list('/d', { watch: true, via })));
      await scene.advance(1);
    }
    const [, watcher] = clients;
    const list = seen[1];
    if (!watcher || !list) return t.fail();
    for (const isChanged of [true, false]) {
      scene.server.partition(watcher.store);
      await scene.advance(3 * TTL);
      t.is(list.last?.status, 'stale');
      const before = list.listings.length;
      if (isChanged) scene.remove('/d/a');
      scene.server.heal(watcher.store, 'end');
      await scene.advance(4);
      const after = list.listings.slice(before).map(({ status, children }) => `${status} ${children}`);
      t.is(after[0], 'live b', after.join(', '));
      t.is(list.last?.status, 'live');
    }
  });
}

test('a list without a lease is not stale after a moment, however long it was quiet before', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const { client, store } = await scene.connect({ ttl: 10, candidate: false });
  const seen = new Seen(client.list('/d', { watch: true }));
  await scene.advance(60);
  scene.server.partition(store);
  scene.server.cut(store);
  await scene.advance(1);
  scene.server.heal(store);
  await scene.advance(3);
  t.deepEqual(new Set(seen.listings.map(({ status }) => status)), new Set(['live']));
  scene.server.partition(store);
  scene.server.cut(store);
  await scene.advance(10);
  t.is(seen.last?.status, 'stale');
});

test('a list that is begun while the store is down comes when it is back', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const it = await scene.connect({ ttl: TTL });
  scene.server.stop();
  await scene.settle();
  const [mirror, direct] = [
    new Seen(it.client.list('/d', { watch: true })),
    new Seen(it.client.list('/d', { watch: true, via: 'direct' })),
  ];
  await scene.advance(60);
  t.deepEqual([mirror.listings.length, direct.ended], [0, false]);
  scene.server.start();
  await scene.advance(3);
  t.deepEqual([mirror.names, direct.names], ['a', 'a']);
});

test('a quiet mirrored list is not read anew though its history is compacted and etcd restarted (L5)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const { master, follower } = await mirrored(scene);
  for (let i = 0; i < 100; i++) scene.put('/elsewhere', String(i));
  await scene.advance(2);
  const relists = follower.stats.of('list.relists');
  const listings = follower.seen.listings.length;
  scene.server.compact();
  scene.server.restart();
  await scene.advance(10);
  scene.server.compact();
  scene.server.restart();
  await scene.advance(10);
  t.is(follower.stats.of('list.relists'), relists);
  t.is(follower.seen.listings.length, listings);
  scene.put('/d/b');
  await scene.advance(1);
  t.deepEqual([master.seen.names, follower.seen.names], ['a b', 'a b']);
});

test('under NOSPACE the dead leave mirrored lists all the same, and the mirror returns when there is room', async (t) => {
  const scene = new MemoryScene();
  const dying = await scene.connect({ ttl: TTL });
  await dying.client.addKey('/d/dying', '');
  scene.put('/d/stays');
  const { master, follower } = await mirrored(scene);
  t.is(follower.seen.names, 'dying stays');
  scene.server.noSpace = true;
  scene.server.crash(dying.store);
  await scene.advance(TTL + 2);
  t.deepEqual([follower.seen.names, follower.seen.last?.status], ['stays', 'live']);
  t.is(scene.key('/_watcherDir/d//'), undefined, 'there is no marker that could be believed');
  scene.remove('/d/stays');
  await scene.advance(1);
  t.is(follower.seen.names, '');
  scene.server.noSpace = false;
  scene.put('/d/new');
  await scene.advance(10);
  t.is(follower.seen.names, 'new');
  t.not(scene.key('/_watcherDir/d//'), undefined);
  const messages = follower.traffic.eventMessages;
  for (let i = 0; i < 20; i++) scene.put('/d/new', String(i));
  await scene.advance(1);
  t.is(follower.traffic.eventMessages, messages, 'refreshes are kept from it again');
  t.is(master.seen.names, 'new');
});

test('a marker that tells of the future is not believed, and lists stay right (L2)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const { master, follower } = await mirrored(scene);
  const marker = JSON.parse(Buffer.from(scene.key('/_watcherDir/d//')?.value ?? '').toString());
  scene.put('/_watcherDir/d//', JSON.stringify({ ...marker, to: 1_000_000 }));
  scene.put('/d/b');
  await scene.advance(3);
  scene.put('/d/c');
  await scene.advance(3);
  t.deepEqual([master.seen.names, follower.seen.names], ['a b c', 'a b c']);
});

test('a lock that somebody put and that mirrors nothing is deposed (M4)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  scene.put('/_watcherLock/names/d//000');
  const { follower } = await mirrored(scene);
  await scene.advance(TTL * 5);
  t.is(scene.key('/_watcherLock/names/d//000'), undefined);
  t.not(scene.key('/_watcherDir/d//'), undefined);
  t.is(follower.seen.names, 'a');
});

test('the last watcher takes the mirror with it, one that is not the last leaves it (S2)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const { master, follower } = await mirrored(scene);
  await master.client.close();
  await scene.advance(1);
  t.not(scene.key('/_watcherDir/d//'), undefined);
  await follower.client.close();
  await scene.advance(1);
  t.deepEqual(scene.keys('/_watcher'), []);
});
