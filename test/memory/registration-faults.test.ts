import test from 'ava';
import { type Clock, sleep } from '../../src/core/clock.ts';
import type { CallOptions, LeaseStatus, Store, Txn, TxnResult } from '../../src/core/store.ts';
import { ConnectionError, PathExistsError, type Registration, type RegistrationState } from '../../src/index.ts';
import { PassingStore } from '../simulation/stores.ts';
import { type MemoryClient, MemoryScene } from '../support/memory-clients.ts';
import { connectOver } from '../support/space.ts';

const TTL = 2;

function statesOf(registration: Registration): RegistrationState[] {
  const told: RegistrationState[] = [];
  registration.state$.subscribe((state) => told.push(state));
  return told;
}

interface Outage {
  begin(scene: MemoryScene, client: MemoryClient): void;
  end(scene: MemoryScene, client: MemoryClient): void;
}

/** Each leaves the client without the store, and gives it back. */
const OUTAGES: Readonly<Record<string, Outage>> = {
  'a network that loses everything': {
    begin: ({ server }, { store }) => server.partition(store),
    end: ({ server }, { store }) => server.heal(store, 'resume'),
  },
  'a network after which connections are reset': {
    begin: ({ server }, { store }) => server.partition(store),
    end: ({ server }, { store }) => server.heal(store, 'end'),
  },
  'a network after which connections are dead and nobody says so': {
    begin: ({ server }, { store }) => server.partition(store),
    end: ({ server }, { store }) => server.heal(store, 'silent'),
  },
  'a store that is down': { begin: ({ server }) => server.stop(), end: ({ server }) => server.start() },
};

for (const [name, outage] of Object.entries(OUTAGES)) {
  test(`${name}: after an outage longer than the ttl a registration comes back, once (R4)`, async (t) => {
    for (const seconds of [2.5, 7, 3_600]) {
      const scene = new MemoryScene();
      const it = await scene.connect({ ttl: TTL });
      const registration = await it.client.addKey('/k', 'v');
      await scene.advance(3.3);
      const events = scene.record('/k');
      outage.begin(scene, it);
      await scene.advance(seconds);
      t.is(registration.state, 'lost');
      t.true(registration.error instanceof ConnectionError);
      outage.end(scene, it);
      await scene.advance(TTL + 1);
      t.is(registration.state, 'registered', `${seconds} s`);
      t.is(scene.value('/k'), 'v');
      // While a stopped store counts nothing down, its lease can be resumed.
      t.deepEqual(events, name === 'a store that is down' ? [] : ['-/k', '+/k']);
      await it.client.close();
    }
  });

  test(`${name}: an outage under half the ttl makes no event, and the registration stays (R6)`, async (t) => {
    for (let offset = 0; offset < 1; offset += 0.07) {
      const scene = new MemoryScene({}, Math.round(offset * 100));
      const it = await scene.connect({ ttl: TTL });
      const registration = await it.client.addKey('/k', 'v');
      await scene.advance(3 + offset);
      const [events, states] = [scene.record('/k'), statesOf(registration)];
      outage.begin(scene, it);
      await scene.advance(TTL / 2 - 0.01);
      outage.end(scene, it);
      await scene.advance(10);
      t.deepEqual([events, states], [[], ['registered']], `outage ${offset} s after a keepalive`);
      await it.client.close();
    }
  });

  test(`${name}: ownership is given up a ttl after the last answered keepalive was sent, not later (R5)`, async (t) => {
    for (let offset = 0; offset < 1; offset += 0.13) {
      const scene = new MemoryScene({ delayMs: () => 100 });
      const connecting = scene.connect({ ttl: TTL });
      await scene.advance(0.5);
      const it = await connecting;
      const adding = it.client.addKey('/k', 'v');
      await scene.advance(3 + offset);
      const registration = await adding;
      outage.begin(scene, it);
      await scene.advance(TTL / 2);
      t.is(registration.state, 'registered');
      let stoodWhenLost = false;
      registration.state$.subscribe((state) => {
        if (state === 'lost') stoodWhenLost = scene.key('/k') !== undefined;
      });
      await scene.advance(TTL / 2);
      t.is(registration.state, 'lost');
      t.true(stoodWhenLost, 'before the store lets it go');
    }
  });

  test(`${name}: an update made meanwhile is what comes back (R3)`, async (t) => {
    const scene = new MemoryScene();
    const it = await scene.connect({ ttl: TTL });
    const registration = await it.client.addKey('/k', 'old');
    outage.begin(scene, it);
    const updates = [registration.update('newer'), registration.update('newest')];
    await scene.advance(5);
    outage.end(scene, it);
    await scene.advance(TTL + 1);
    await Promise.all(updates);
    t.is(scene.value('/k'), 'newest');
    t.is(registration.state, 'registered');
  });

  test(`${name}: a removal made meanwhile takes effect (R3)`, async (t) => {
    for (const seconds of [0.5, 5]) {
      const scene = new MemoryScene();
      const it = await scene.connect({ ttl: TTL });
      const registration = await it.client.addKey('/k', 'v');
      const other = await it.client.addKey('/other', 'v');
      outage.begin(scene, it);
      void registration.remove();
      await scene.advance(seconds);
      t.is(registration.state, 'removed');
      outage.end(scene, it);
      await scene.advance(TTL + 1);
      t.is(scene.key('/k'), undefined);
      t.is(other.state, 'registered');
    }
  });

  test(`${name}: addKey waits for the store, and with wait: false it does not`, async (t) => {
    const scene = new MemoryScene();
    const it = await scene.connect({ ttl: TTL });
    outage.begin(scene, it);
    await scene.settle();
    const waiting = it.client.addKey('/k', 'v');
    const registration = await it.client.addKey('/l', 'v', { wait: false });
    await scene.advance(60);
    t.is(registration.state, 'registering');
    outage.end(scene, it);
    await scene.advance(TTL + 1);
    t.is((await waiting).state, 'registered');
    t.is(registration.state, 'registered');
  });

  test(`${name}: a single call fails after its budget with an error that names path and endpoint`, async (t) => {
    const scene = new MemoryScene();
    const it = await scene.connect({ ttl: TTL });
    outage.begin(scene, it);
    await scene.settle();
    const rejection = t.throwsAsync(it.client.addDir('/d'), { instanceOf: ConnectionError });
    await scene.advance(30);
    t.regex((await rejection)?.message ?? '', /\/d.*memory:.*10 s.*check/);
  });

  test(`${name}: close takes at most two seconds, and leaves nothing alive`, async (t) => {
    for (const seconds of [0, 0.3, 1, 5]) {
      const scene = new MemoryScene();
      const it = await scene.connect({ ttl: TTL });
      await it.client.addKey('/k', 'v');
      it.client.list('/', { watch: true }).subscribe();
      await scene.settle();
      outage.begin(scene, it);
      await scene.advance(seconds);
      let closed = false;
      void it.client.close().then(() => {
        closed = true;
      });
      await scene.advance(2);
      t.true(closed, `${seconds} s into the outage`);
      outage.end(scene, it);
      await scene.advance(2 * TTL);
      t.is(scene.key('/k'), undefined);
    }
  });
}

test('a wiped store is noticed, and registrations are made again (R4)', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const registrations = await Promise.all(['/a', '/d/b', '/d/c'].map((path) => client.addKey(path, path)));
  await scene.advance(5);
  scene.server.wipe();
  await scene.advance(TTL + 1);
  t.deepEqual(scene.dump(), ['/a=/a', '/d/b=/d/b', '/d/c=/d/c']);
  t.true(registrations.every(({ state }) => state === 'registered'));
});

test('an older snapshot is noticed, and registrations are brought in line with it (R4)', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const before = await client.addKey('/before', 'old');
  const removed = await client.addKey('/removed', 'v');
  const snapshot = scene.server.snapshot();
  await before.update('new');
  await removed.remove();
  const after = await client.addKey('/after', 'v');
  await scene.advance(3_600);
  scene.server.restore(snapshot);
  await scene.advance(TTL + 1);
  t.deepEqual([scene.value('/before'), scene.value('/after')], ['new', 'v']);
  t.deepEqual([before.state, after.state], ['registered', 'registered']);
  await scene.advance(2 * TTL);
  t.is(scene.key('/removed'), undefined, 'what was removed does not come back for good');
});

test('a key or lease that is taken away is back within a ttl and a second, whatever the moment (R4)', async (t) => {
  for (let offset = 0; offset < 1; offset += 0.17) {
    const scene = new MemoryScene();
    const { client } = await scene.connect({ ttl: TTL });
    const registration = await client.addKey('/k', 'v');
    await scene.advance(offset);
    scene.remove('/k');
    await scene.advance(TTL + 1);
    t.is(scene.value('/k'), 'v');
    scene.server.model.revoke(scene.key('/k')?.lease ?? '');
    await scene.advance(TTL + 1);
    t.is(scene.value('/k'), 'v');
    t.is(registration.state, 'registered');
  }
});

/** Writes take their time, and what is known of a lease is answered before them and told after them. */
class SlowWrites extends PassingStore {
  readonly #clock: Clock;

  constructor(inner: Store, clock: Clock) {
    super(inner);
    this.#clock = clock;
  }

  override async txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    await sleep(this.#clock, 20);
    return super.txn(txn, options);
  }

  override async leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus> {
    const status = await super.leaseTimeToLive(id, withKeys, options);
    await sleep(this.#clock, 60);
    return status;
  }
}

test('a verification that was asked while a key was on its way is no proof that it was deleted (R1)', async (t) => {
  const scene = new MemoryScene();
  const connecting = connectOver(new SlowWrites(scene.server.client(), scene.clock), scene.clock, { ttl: TTL });
  await scene.advance(0.1);
  const client = await connecting;
  const states: RegistrationState[][] = [];
  // Own keys are verified several times meanwhile.
  for (let i = 0; i < 300; i += 1) {
    states.push(statesOf(await client.addKey(`/d/${i}`, '', { wait: false })));
    await scene.advance(0.007);
  }
  await scene.advance(2 * TTL);
  for (const told of states) t.deepEqual(told, ['registering', 'registered']);
});

test('whose key is lost is told also when the reason turns out to be another one', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const registration = await client.addKey('/k', 'mine');
  const reasons: (string | undefined)[] = [];
  registration.state$.subscribe((state) => reasons.push(registration.error?.code ?? state));
  scene.put('/k', 'theirs');
  await scene.advance(TTL + 1);
  t.is(reasons.at(-1), 'CONFLICT', reasons.join(', '));
  scene.remove('/k');
  await scene.advance(TTL + 1);
  t.is(reasons.at(-1), 'registered');
});

test('a fence that is taken away is made again, and hinders no write', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const registration = await client.addKey('/k', 'v');
  for (const { key } of scene.keys('/_sessions/')) scene.remove(key);
  const updated = registration.update('w');
  await scene.advance(TTL + 1);
  await updated;
  t.is(scene.value('/k'), 'w');
  t.is(registration.state, 'registered');
});

test("one's own late write never undoes a newer one, nor brings a removed key back (R3)", async (t) => {
  // The member thaws at each of many moments after the write has been given up and made elsewhere.
  for (let seconds = 0; seconds < 12; seconds += 0.45) {
    for (const last of ['update', 'remove', 'close'] as const) {
      const scene = new MemoryScene({}, Math.round(seconds * 100));
      const { client, store } = await scene.connect({ ttl: TTL });
      const registration = await client.addKey('/k', '1');
      scene.server.freeze(store);
      const stale = registration.update('2').catch(() => {});
      await scene.advance(0.1);
      const end =
        last === 'update' ? registration.update('3') : last === 'remove' ? registration.remove() : client.close();
      await scene.advance(seconds);
      scene.server.thaw(store);
      await scene.advance(2 * TTL + 2);
      await end;
      await stale;
      t.is(scene.value('/k'), last === 'update' ? '3' : undefined, `${last}, thawed after ${seconds} s`);
    }
  }
});

test('a key that was on its way when it was removed does not come into being later (R3)', async (t) => {
  for (let seconds = 0; seconds < 12; seconds += 0.45) {
    const scene = new MemoryScene({}, Math.round(seconds * 100));
    const { client, store } = await scene.connect({ ttl: TTL });
    const other = await client.addKey('/other', 'v');
    scene.server.freeze(store);
    const registration = await client.addKey('/k', 'v', { wait: false });
    await scene.advance(0.1);
    const removed = registration.remove();
    await scene.advance(seconds);
    scene.server.thaw(store);
    await scene.advance(2 * TTL + 2);
    await removed;
    t.is(scene.key('/k'), undefined, `thawed after ${seconds} s`);
    t.is(other.state, 'registered');
  }
});

test('a write whose answer is lost is found done, and is not done twice (R3)', async (t) => {
  const scene = new MemoryScene();
  const { client, store } = await scene.connect({ ttl: TTL });
  const registration = await client.addKey('/k', '1');
  const events = scene.record('/k');
  scene.server.loseReplies(store);
  const updated = registration.update('2');
  await scene.advance(1);
  await updated;
  t.deepEqual([scene.value('/k'), events], ['2', ['+/k']]);
  scene.server.loseReplies(store);
  const added = client.addDir('/d');
  await scene.advance(1);
  await t.notThrowsAsync(added);
  scene.server.loseReplies(store);
  const removed = client.removeDir('/d');
  await scene.advance(1);
  await t.notThrowsAsync(removed);
  t.deepEqual(scene.dump(), ['/k=2']);
});

test('close or abort at any moment of addKey leaves no key', async (t) => {
  for (const way of ['close', 'abort', 'until', 'remove'] as const) {
    for (let ms = 0; ms < 60; ms += 3) {
      const scene = new MemoryScene({ delayMs: () => 5 }, ms);
      const connecting = scene.connect({ ttl: TTL });
      await scene.advance(0.05);
      const { client } = await connecting;
      const stop = new AbortController();
      const signals = way === 'abort' ? { signal: stop.signal } : way === 'until' ? { until: stop.signal } : {};
      const adding = client.addKey('/k', 'v', signals).catch(() => undefined);
      await scene.advance(ms / 1_000);
      const ended =
        way === 'close' ? client.close() : way === 'remove' ? adding.then((it) => it?.remove()) : stop.abort();
      await scene.advance(0.2);
      await ended;
      const registration = await adding;
      // A signal that comes after the call has ended ends nothing.
      if (way === 'abort' && registration) t.is(registration.state, 'registered');
      else t.is(scene.key('/k'), undefined, `${way} after ${ms} ms`);
      await scene.advance(2 * TTL);
      if (way !== 'abort') t.is(scene.key('/k'), undefined);
      void client.close();
      await scene.advance(1);
    }
  }
});

test('a process that comes back under its old name replaces its dead self within two ttls', async (t) => {
  const scene = new MemoryScene();
  const dead = await scene.connect({ ttl: TTL });
  await dead.client.addKey('/k', 'host:1');
  await scene.advance(1.9);
  scene.server.crash(dead.store);
  const { client } = await scene.connect({ ttl: TTL });
  const added = client.addKey('/k', 'host:2');
  await scene.advance(2 * TTL);
  t.is((await added).state, 'registered');
  t.is(scene.value('/k'), 'host:2');
});

test('patience with an owner lasts the larger of two ttls and its ttl and two seconds', async (t) => {
  for (const [ownersTtl, patience] of [
    [2, 4],
    [30, 32],
  ] as const) {
    const scene = new MemoryScene();
    const owner = await scene.connect({ ttl: ownersTtl });
    await owner.client.addKey('/k', 'theirs');
    const { client } = await scene.connect({ ttl: TTL });
    let error: unknown;
    void client.addKey('/k', 'ours').catch((thrown: unknown) => {
      error = thrown;
    });
    await scene.advance(patience - 0.01);
    t.is(error, undefined);
    await scene.advance(0.02);
    t.true(error instanceof PathExistsError);
    t.is(scene.value('/k'), 'theirs');
  }
});

test('after SIGKILL a key is gone within its ttl (R2)', async (t) => {
  for (let offset = 0; offset < 1; offset += 0.19) {
    const scene = new MemoryScene();
    const { client, store } = await scene.connect({ ttl: TTL });
    await client.addKey('/k', 'v');
    await scene.advance(5 + offset);
    scene.server.crash(store);
    await scene.advance(TTL);
    t.is(scene.key('/k'), undefined);
  }
});

test('thousands of registrations are one lease, one keepalive and one verification a period (S1)', async (t) => {
  const scene = new MemoryScene();
  const { client, traffic } = await scene.connect({ ttl: 4 });
  const adding = Promise.all(Array.from({ length: 2_000 }, (_, i) => client.addKey(`/d/${i}`, '')));
  await scene.advance(1);
  await adding;
  const leases = new Set(scene.keys('/d/').map(({ lease }) => lease));
  const before = { calls: traffic.calls, keepAlives: traffic.keepAlives };
  await scene.advance(40);
  t.is(leases.size, 1);
  t.is(traffic.keepAlives - before.keepAlives, 40);
  t.true(traffic.calls - before.calls <= 40);
  t.is(traffic.keepAliveStreams, 1);
  t.is(traffic.watchStreams, 0);
});

test('a lease heartbeat writes nothing at all; a put heartbeat writes each 0.4 ttl, and is tried again within its period', async (t) => {
  const scene = new MemoryScene();
  const { client, store } = await scene.connect({ ttl: 5 });
  await client.addKey('/lease', 'v');
  await client.addKey('/put', 'v', { heartbeat: 'put' });
  const [lease, put] = [scene.record('/lease'), scene.record('/put')];
  await scene.advance(20);
  t.is(lease.length, 0);
  t.is(put.length, 10);
  scene.server.loseRequests(store);
  await scene.advance(3.9);
  t.is(put.length, 11, 'a lost heartbeat is made up for within its period');
});

test('an unreachable store is reconnected to at growing intervals, also one that flaps', async (t) => {
  const scene = new MemoryScene();
  const { client, traffic } = await scene.connect({ ttl: TTL });
  const registration = await client.addKey('/k', 'v');
  scene.server.stop();
  await scene.advance(10);
  const before = traffic.connects;
  await scene.advance(100);
  t.true(traffic.connects - before <= 210 && traffic.connects - before >= 95, `${traffic.connects - before} in 100 s`);
  const flapping = traffic.connects;
  for (let i = 0; i < 100; i++) {
    scene.server.restart();
    await scene.advance(0.1);
  }
  t.true(traffic.connects - flapping <= 70, `${traffic.connects - flapping} in 10 s`);
  await scene.advance(TTL + 1);
  t.is(registration.state, 'registered');
});

test('under NOSPACE registrations stay, an update waits, and all goes on when there is room', async (t) => {
  const scene = new MemoryScene();
  const { client } = await scene.connect({ ttl: TTL });
  const registration = await client.addKey('/k', 'v');
  const events = scene.record('/k');
  scene.server.noSpace = true;
  let updated = false;
  void registration.update('w').then(() => {
    updated = true;
  });
  await scene.advance(20);
  t.deepEqual([updated, events], [false, []]);
  scene.server.noSpace = false;
  await scene.advance(2);
  t.deepEqual([updated, scene.value('/k'), registration.state], [true, 'w', 'registered']);
});
