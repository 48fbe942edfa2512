import test from 'ava';
import type { CallOptions, KeepAliveObserver, KeepAliveStream, Txn, TxnResult } from '../../src/core/store.ts';
import type { ClientOptions, WatchOptions } from '../../src/index.ts';
import type { Commit } from '../../src/memory/commit-log.ts';
import { PassingStore } from '../simulation/stores.ts';
import { Seen } from '../support/listings.ts';
import { type MemoryClient, MemoryScene } from '../support/memory-clients.ts';
import { connectOver } from '../support/space.ts';

const TTL = 2;
const MARKER = '/_watcherDir/d//';
const LOCKS = '/_watcherLock/names/d//';

interface Watcher extends MemoryClient {
  readonly seen: Seen;
}

async function watcher(
  scene: MemoryScene,
  options: Partial<WatchOptions> = {},
  client: ClientOptions = {},
): Promise<Watcher> {
  const it = await scene.connect({ ttl: TTL, ...client });
  return { ...it, seen: new Seen(it.client.list('/d', { missing: 'wait', ...options, watch: true })) };
}

/** So many watchers, of whom the first to come is master. */
async function watchers(scene: MemoryScene, count: number, options: Partial<WatchOptions> = {}): Promise<Watcher[]> {
  const all: Watcher[] = [];
  for (let i = 0; i < count; i++) {
    all.push(await watcher(scene, options));
    if (i === 0) await scene.advance(0.2);
  }
  await scene.advance(1);
  return all;
}

/** Calls back with each marker that is committed, and the lock that was first in line at that moment. */
function onMarker(
  scene: MemoryScene,
  callback: (lock: string, first: string | undefined, commit: Commit) => void,
): void {
  scene.server.onCommit((commit) => {
    const marker = commit.events.find(({ type, kv }) => type === 'put' && kv.key === MARKER);
    if (!marker) return;
    const [first] = [...scene.keys(LOCKS)].sort((a, b) => a.createRevision - b.createRevision);
    callback((JSON.parse(Buffer.from(marker.kv.value).toString()) as { lock: string }).lock, first?.key, commit);
  });
}

function tally(scene: MemoryScene): () => void {
  const told: string[] = [];
  onMarker(scene, (lock, first) => {
    if (lock !== first) told.push(`${lock} wrote while ${first} was master`);
  });
  return () => {
    if (told.length > 0) throw new Error(told.join('\n'));
  };
}

test('heartbeats of either kind bring no message to mirrored watchers; master and direct watchers hear each once (L4)', async (t) => {
  const [registrars, seconds] = [150, 10];
  const scene = new MemoryScene();
  for (let i = 0; i < registrars; i++) {
    const { client } = await scene.connect({ ttl: TTL, heartbeat: 'put' });
    await client.addKey(`/d/${i}`, String(i));
    void scene.connect({ ttl: TTL }).then((it) => it.client.addKey(`/d/quiet-${i}`, ''));
  }
  const [master, ...mirrored] = await watchers(scene, 30);
  const direct = await watcher(scene, { via: 'direct' });
  const valued = await watchers(scene, 2, { values: true });
  await scene.advance(TTL);
  const before = [master, ...mirrored, direct, valued[1]].map((it) => it?.traffic.events ?? 0);
  const keepAlives = mirrored[5]?.traffic.keepAlives ?? 0;
  await scene.advance(seconds);
  const events = [master, ...mirrored, direct, valued[1]].map((it, i) => (it?.traffic.events ?? 0) - (before[i] ?? 0));
  const refreshes = (registrars * seconds) / (0.4 * TTL);
  t.true(Math.abs((events[0] ?? 0) - refreshes) <= registrars, `the master heard ${events[0]} of ${refreshes}`);
  t.true(
    Math.abs((events.at(-2) ?? 0) - refreshes) <= registrars,
    `a direct watcher heard ${events.at(-2)} of ${refreshes}`,
  );
  t.deepEqual(new Set(events.slice(1, -2)), new Set([0]), 'the others');
  t.is(events.at(-1), 0, 'with values as well');
  t.is((mirrored[5]?.traffic.keepAlives ?? 0) - keepAlives, seconds / (TTL / 4));
});

for (const [pace, spreadSeconds, bound] of [
  ['at once', 0, 8],
  ['spread over three seconds', 3, 65],
] as const) {
  test(`400 that come and 400 that go, ${pace}, are a few messages a watcher, and each ends with the right list (L2)`, async (t) => {
    const count = 400;
    let chance = 1;
    const delayMs = () => {
      chance = (chance * 75) % 65_537;
      return 1 + chance / 65_537;
    };
    const scene = new MemoryScene({ delayMs }, 5);
    const all: Watcher[] = [];
    const connecting = Array.from({ length: count }, () => watcher(scene).then((it) => all.push(it)));
    await scene.advance(5);
    await Promise.all(connecting);
    const members = await (async () => {
      const made = Array.from({ length: count }, () => scene.connect({ ttl: 60 }));
      await scene.advance(1);
      return Promise.all(made);
    })();
    for (const { seen } of all) t.is(seen.last?.children.length, 0);
    const late: Watcher[] = [];
    for (const phase of ['join', 'leave'] as const) {
      const before = all.map(({ traffic }) => traffic.eventMessages);
      const calls = all.map(({ traffic }) => traffic.calls);
      for (const [i, { client }] of members.entries()) {
        if (phase === 'join') void client.addKey(`/d/${i}`, '');
        else void client.close();
        if (i === count / 2) void watcher(scene).then((it) => late.push(it));
        if (spreadSeconds > 0) await scene.advance(spreadSeconds / count);
      }
      await scene.advance(1.5);
      const children = phase === 'join' ? count : 0;
      for (const { seen } of [...all, ...late]) t.is(seen.last?.children.length, children);
      const lock = [...scene.keys(LOCKS)].sort((a, b) => a.createRevision - b.createRevision)[0]?.lease;
      t.truthy(lock);
      const heard = all.map(({ traffic }, i) => traffic.eventMessages - (before[i] ?? 0));
      // The one that hears the directory itself is the master.
      const mirrored = heard.sort((a, b) => a - b).slice(0, -1);
      t.true((mirrored.at(-1) ?? 0) <= bound, `${phase}: up to ${mirrored.at(-1)} messages`);
      const asked = all.map(({ traffic }, i) => traffic.calls - (calls[i] ?? 0)).sort((a, b) => a - b);
      t.true((asked.at(-2) ?? 0) <= bound, `${phase}: up to ${asked.at(-2)} calls`);
    }
    t.is(late.length, 2);
  });
}

test('a child that comes, is listed and goes within one batch leaves no ghost (L2)', async (t) => {
  for (let ms = 0; ms < 50; ms += 4) {
    const scene = new MemoryScene({}, ms);
    const [master] = await watchers(scene, 2);
    scene.put('/d/first');
    await scene.settle();
    await scene.advance(ms / 1_000);
    scene.put('/d/brief');
    const reader = await watcher(scene);
    await scene.settle();
    scene.remove('/d/brief');
    await scene.advance(1);
    t.is(reader.seen.names, 'first', `${ms} ms after a marker`);
    t.is(master?.seen.names, 'first');
  }
});

test('what a master that died amid a large batch left undone is done by its successor (M3)', async (t) => {
  for (const deadAfter of [1, 2, 3]) {
    const scene = new MemoryScene();
    const [master, ...others] = await watchers(scene, 4);
    const verdict = tally(scene);
    let parts = 0;
    scene.server.onCommit(({ events }) => {
      if (!events.some(({ kv }) => kv.key.startsWith(MARKER))) return;
      parts += 1;
      if (parts === deadAfter && master) scene.server.crash(master.store);
    });
    for (let i = 0; i < 400; i++) scene.put(`/d/${i}`);
    scene.remove('/d/7');
    await scene.advance(TTL + 1);
    for (const { seen } of others) t.is(seen.last?.children.length, 399, `dead after ${deadAfter} parts`);
    await scene.advance(2);
    t.is(scene.keys(MARKER).length, 400, 'the plain shadow is repaired');
    verdict();
  }
});

test('a dead master is replaced within its ttl and a second, a closing one at once (M3)', async (t) => {
  const scene = new MemoryScene();
  const verdict = tally(scene);
  const all = await watchers(scene, 4);
  scene.put('/d/a');
  await scene.advance(0.2);
  const [dead, closing, ...rest] = all;
  if (dead) scene.server.crash(dead.store);
  scene.put('/d/b');
  await scene.advance(TTL + 1);
  for (const { seen } of rest) t.is(seen.names, 'a b');
  void closing?.client.close();
  scene.put('/d/c');
  await scene.advance(0.2);
  for (const { seen } of rest) t.is(seen.names, 'a b c');
  verdict();
});

test('a master that stood still while another took over writes nothing any more (M1)', async (t) => {
  for (let seconds = 0.2; seconds < 8; seconds += 0.6) {
    const scene = new MemoryScene({}, Math.round(seconds * 10));
    const verdict = tally(scene);
    const [master, ...others] = await watchers(scene, 4);
    if (master) scene.server.freeze(master.store);
    for (let i = 0; i < 300; i++) scene.put(`/d/${i}`);
    await scene.advance(seconds);
    for (let i = 0; i < 100; i++) scene.remove(`/d/${i}`);
    if (master) scene.server.thaw(master.store);
    await scene.advance(2 * TTL + 2);
    for (const { seen } of [...others, ...(master ? [master] : [])]) t.is(seen.last?.children.length, 200);
    verdict();
    t.is(scene.keys(LOCKS).length, 4, 'each has one place in line');
  }
});

test('a master whose lock goes while its write is under way does not write (M1)', async (t) => {
  const scene = new MemoryScene();
  const [, ...others] = await watchers(scene, 3);
  const verdict = tally(scene);
  const [lock] = [...scene.keys(LOCKS)].sort((a, b) => a.createRevision - b.createRevision);
  if (!lock) return t.fail('nobody is master');
  scene.put('/d/a');
  scene.remove(lock.key);
  await scene.advance(TTL + 1);
  verdict();
  for (const { seen } of others) t.is(seen.names, 'a');
});

test("a master's own write that was held up does not undo its later ones (M1)", async (t) => {
  const scene = new MemoryScene({ delayMs: (kind) => (kind === 'request' ? 5 : 1) });
  const all: Watcher[] = [];
  for (let i = 0; i < 2; i += 1) {
    void watcher(scene, {}, { ttl: 30 }).then((it) => all.push(it));
    await scene.advance(1);
  }
  const [master] = all;
  if (!master) return t.fail('nobody is master');
  const told: number[] = [];
  onMarker(scene, (_lock, _first, { events }) => {
    const marker = events.find(({ kv }) => kv.key === MARKER)?.kv.value ?? [];
    told.push((JSON.parse(Buffer.from(marker).toString()) as { to: number }).to);
  });
  scene.put('/d/a');
  // The event has come, and the write is on its way.
  await scene.advance(0.003);
  scene.server.freeze(master.store);
  await scene.advance(20);
  for (const name of ['b', 'c', 'd']) {
    scene.put(`/d/${name}`);
    await scene.advance(1);
  }
  scene.server.thaw(master.store);
  await scene.advance(5);
  t.true(told.length >= 2, 'it went on over another connection');
  t.deepEqual(
    told,
    [...told].sort((a, b) => a - b),
    'markers only go on',
  );
  for (const { seen } of all) t.is(seen.names, 'a b c d');
});

test('watchers who all close at the same moment leave no mirror behind', async (t) => {
  let chance = 1;
  const delayMs = () => {
    chance = (chance * 75) % 65_537;
    return 1 + (5 * chance) / 65_537;
  };
  const scene = new MemoryScene({ delayMs });
  const all: Watcher[] = [];
  for (let i = 0; i < 8; i += 1) {
    void watcher(scene).then((it) => all.push(it));
    await scene.advance(0.5);
  }
  scene.put('/d/a');
  await scene.advance(1);
  t.is(scene.keys(LOCKS).length, 8);
  for (const { client } of all) void client.close();
  await scene.advance(1);
  t.deepEqual(scene.dump(), ['/d/a=']);
});

test('one transaction of a mirror is under way at a time (M2)', async (t) => {
  const scene = new MemoryScene({ delayMs: (kind) => (kind === 'event' ? 1 : 20) });
  const connecting = watcher(scene);
  await scene.advance(1);
  const { seen } = await connecting;
  let last = Number.NEGATIVE_INFINITY;
  const gaps: number[] = [];
  scene.server.onCommit(({ events }) => {
    if (!events.some(({ kv }) => kv.key.startsWith(MARKER))) return;
    gaps.push(scene.clock.now() - last);
    last = scene.clock.now();
  });
  for (let i = 0; i < 1_000; i++) {
    scene.put(`/d/${i}`);
    if (i % 10 === 0) await scene.advance(0.003);
  }
  await scene.advance(2);
  t.is(seen.last?.children.length, 1_000);
  t.true(gaps.length > 8);
  t.true(
    gaps.every((gap) => gap >= 40),
    `the shortest time between two was ${Math.min(...gaps)} ms, a round trip is 40`,
  );
});

class Hold {
  #held: (() => void)[] | undefined;

  begin(): void {
    this.#held = [];
  }

  end(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const run of held) run();
  }

  pass(run: () => void): void {
    if (this.#held) this.#held.push(run);
    else run();
  }
}

/** Holds back what a client is to hear: the answers to what it writes into a mirror, and those to its keepalives. */
class HoldingStore extends PassingStore {
  readonly answers = new Hold();
  readonly keepAlives = new Hold();
  mostAtOnce = 0;
  #underWay = 0;

  override async txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    if (!txn.success.some((op) => op.type === 'put' && op.key === MARKER)) return this.inner.txn(txn, options);
    this.#underWay += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#underWay);
    const answer = await this.inner.txn(txn, options);
    await new Promise<void>((resolve) => this.answers.pass(resolve));
    this.#underWay -= 1;
    return answer;
  }

  override openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    return this.inner.openKeepAlive({
      ...observer,
      onAlive: (id, ttl) => this.keepAlives.pass(() => observer.onAlive(id, ttl)),
    });
  }
}

test('a master that leads again under the same lock waits for the answer of what it wrote before (M2)', async (t) => {
  const scene = new MemoryScene();
  const store = new HoldingStore(scene.server.client());
  const client = await connectOver(store, scene.clock, { ttl: TTL });
  const own = await client.addKey('/own', '');
  const seen = new Seen(client.list('/d', { missing: 'wait', watch: true }));
  await scene.advance(1);
  const [lock] = scene.keys(LOCKS);
  store.answers.begin();
  store.keepAlives.begin();
  scene.put('/d/a');
  await scene.advance(TTL);
  t.is(own.state, 'lost');
  store.keepAlives.end();
  scene.put('/d/b');
  await scene.advance(TTL);
  t.is(own.state, 'registered');
  t.is(scene.keys(LOCKS)[0]?.createRevision, lock?.createRevision, 'the lease outlived what was known of it');
  t.false(scene.value(MARKER)?.includes('"b"'));
  store.answers.end();
  await scene.advance(1);
  t.is(store.mostAtOnce, 1);
  t.deepEqual(seen.last?.children, ['a', 'b']);
  t.true(scene.value(MARKER)?.includes('"b"'));
});

test('the first change is told at once, and then at least 50 ms pass between two markers', async (t) => {
  const scene = new MemoryScene();
  await watchers(scene, 2);
  const at: number[] = [];
  onMarker(scene, () => at.push(scene.clock.now()));
  const startMs = scene.clock.now();
  for (let i = 0; i < 200; i++) {
    scene.put(`/d/${i}`);
    await scene.advance(0.005);
  }
  await scene.advance(1);
  t.is(at[0], startMs);
  for (const [i, ms] of at.entries()) if (i > 0) t.true(ms - (at[i - 1] ?? 0) >= 50);
  t.true(at.length <= 22);
});

test('a master that holds its lock and mirrors nothing is found out and deposed (M4)', async (t) => {
  const scene = new MemoryScene();
  scene.put('/d/a');
  const lease = scene.server.grant(3_600).id;
  const lock = `${LOCKS}${lease}`;
  scene.put(lock, '', lease);
  const revision = scene.server.model.header.revision;
  const touched = [[], ['a'], [], []];
  scene.put(
    MARKER,
    JSON.stringify({ v: 1, lock, from: 0, to: revision, touched, dirs: { from: 0, to: revision, touched: [[], []] } }),
  );
  const all = [await watcher(scene), await watcher(scene), await watcher(scene), await watcher(scene)];
  await scene.advance(1);
  const audits = all.map(({ traffic }) => traffic.calls);
  scene.put('/d/b');
  await scene.advance(0.5);
  t.is(all[3]?.seen.names, 'a', 'nobody tells them');
  await scene.advance(10 * TTL);
  for (const { seen } of all) t.is(seen.names, 'a b');
  t.is(scene.key(lock), undefined);
  t.is(scene.keys(LOCKS).length, 4);
  const spent = all.map(({ traffic }, i) => traffic.calls - (audits[i] ?? 0));
  t.true(Math.max(...spent) < 20, `${spent} calls`);
});

test('the cost of watching over a master does not grow with the number of watchers (M4)', async (t) => {
  const costs: number[] = [];
  for (const count of [5, 40]) {
    const scene = new MemoryScene();
    const all = await watchers(scene, count);
    await scene.advance(40 * TTL);
    const sum = () => all.reduce((calls, { traffic }) => calls + traffic.calls, 0);
    const before = sum();
    await scene.advance(100 * TTL);
    costs.push(sum() - before);
  }
  t.true((costs[1] ?? 0) <= 2 * (costs[0] ?? 0) + 10, `${costs} calls`);
});

test('a working master is left in peace (M4)', async (t) => {
  const scene = new MemoryScene({}, 9);
  const [master, ...others] = await watchers(scene, 5);
  const first = scene.keys(LOCKS)[0]?.key;
  for (let i = 0; i < 400; i++) {
    const key = `/d/${Math.floor(scene.clock.random() * 20)}`;
    if (scene.clock.random() < 0.5) scene.put(key);
    else scene.remove(key);
    await scene.advance(0.3);
  }
  t.is(scene.keys(LOCKS)[0]?.key, first);
  t.is(others[0]?.seen.names, master?.seen.names);
});

test('mirrored watchers of a directory hear nothing of the refreshes in directories below it', async (t) => {
  const scene = new MemoryScene();
  for (const path of ['/a/b/x', '/a/b/c/y', '/a-b/z']) scene.put(path);
  const make = async (path: string) => {
    const it = await scene.connect({ ttl: TTL });
    return { ...it, seen: new Seen(it.client.list(path, { watch: true })) };
  };
  await make('/a');
  await scene.advance(0.5);
  const above = await make('/a');
  await make('/a/b');
  await scene.advance(0.5);
  const below = await make('/a/b');
  await scene.advance(1.5);
  const before = above.traffic.eventMessages;
  for (let i = 0; i < 50; i++) {
    for (const path of ['/a/b/x', '/a/b/c/y', '/a-b/z', `/a/b/n${i}`]) scene.put(path, String(i));
    await scene.advance(0.1);
  }
  t.is(above.traffic.eventMessages, before);
  t.is(below.seen.last?.children.length, 52);
  t.deepEqual([above.seen.names, above.seen.last?.directories.join()], ['b', 'b']);
});

test('a batch too large for a marker orders a reading, after which all is right', async (t) => {
  const scene = new MemoryScene();
  const [, follower] = await watchers(scene, 2, { values: true });
  const value = 'x'.repeat(100_000);
  for (let i = 0; i < 20; i++) scene.put(`/d/${i}`, value);
  await scene.advance(3);
  const listing = follower?.seen.last;
  t.is(listing?.children.length, 20);
  t.is(listing?.entries?.get('7')?.value, value);
  scene.put('/d/7', 'small');
  await scene.advance(1);
  t.is(follower?.seen.last?.entries?.get('7')?.value, 'small');
});

test('a watcher that is no candidate goes direct when the master ends, and back when there is one again', async (t) => {
  const scene = new MemoryScene();
  const [master] = await watchers(scene, 1);
  scene.put('/d/a');
  await scene.advance(1);
  const aside = await watcher(scene, {}, { candidate: false });
  await scene.advance(1);
  const writes = scene.record('/');
  void master?.client.close();
  await scene.advance(1);
  writes.length = 0;
  scene.put('/d/b');
  await scene.advance(1);
  t.is(aside.seen.names, 'a b');
  t.deepEqual(writes, ['+/d/b'], 'it writes nothing');
  await watchers(scene, 1);
  await scene.advance(1);
  const events = aside.traffic.events;
  for (let i = 0; i < 10; i++) scene.put('/d/b', String(i));
  await scene.advance(1);
  t.is(aside.traffic.events, events, 'refreshes are kept from it again');
  scene.put('/d/c');
  await scene.advance(1);
  t.is(aside.seen.names, 'a b c');
});

test('a marker that is deleted or scribbled over by an operator misleads nobody', async (t) => {
  const scene = new MemoryScene();
  const all = await watchers(scene, 3);
  for (const harm of [
    () => scene.remove(MARKER),
    () => scene.put(MARKER, 'scribble'),
    () => scene.put(MARKER, '{"v":1}'),
  ]) {
    harm();
    const name = scene.put('/d/tmp');
    await scene.advance(3);
    for (const { seen } of all) t.is(seen.names, 'tmp', String(name));
    scene.remove('/d/tmp');
    await scene.advance(3);
    for (const { seen } of all) t.is(seen.names, '');
  }
});
