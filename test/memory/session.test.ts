import test from 'ava';
import type { Clock, Timer } from '../../src/core/clock.ts';
import { Connection } from '../../src/core/connection.ts';
import { Session } from '../../src/core/session.ts';
import { type Standby, type StandbyNews, type StandbySituation, standbyDuty } from '../../src/core/standby.ts';
import type { KeepAliveObserver, KeepAliveStream, Lease, Store } from '../../src/core/store.ts';
import { ClosedError } from '../../src/index.ts';
import { ManualClock } from '../../src/memory/manual-clock.ts';
import { MemoryServer } from '../../src/memory/memory-server.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import { PassingStore } from '../simulation/stores.ts';
import { MemoryScene } from '../support/memory-clients.ts';
import { connectOver } from '../support/space.ts';

const TTL = 4;
const TTL_MS = TTL * 1_000;

/** Knows when each keepalive was sent and whether it was answered. */
class KeepAliveLog extends PassingStore {
  readonly answeredSendsMs: number[] = [];
  readonly #clock: ManualClock;

  constructor(inner: Store, clock: ManualClock) {
    super(inner);
    this.#clock = clock;
  }

  override openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    const sentMs: number[] = [];
    const stream = this.inner.openKeepAlive({
      ...observer,
      onAlive: (id, ttl) => {
        this.answeredSendsMs.push(sentMs.shift() ?? 0);
        observer.onAlive(id, ttl);
      },
      onEnd: (error) => observer.onEnd(error),
    });
    return {
      send: (id) => {
        sentMs.push(this.#clock.now());
        stream.send(id);
      },
      close: () => stream.close(),
    };
  }
}

/** A stand-in whose news the test writes. */
class ScriptedStandby implements Standby {
  news: StandbyNews | undefined;
  guarded: Lease | undefined;

  guard(lease: Lease): void {
    this.guarded = lease;
    this.news = undefined;
  }

  renewed(): void {}

  takeNews(): StandbyNews | undefined {
    const { news } = this;
    this.news = undefined;
    return news;
  }

  release(): void {
    this.guarded = undefined;
  }

  async close(): Promise<void> {}
}

interface Scene {
  readonly clock: ManualClock;
  readonly server: MemoryServer;
  readonly memory: MemoryStore;
  readonly log: KeepAliveLog;
  readonly session: Session;
  readonly lostAtMs: number[];
}

interface SceneOptions {
  readonly delayMs?: number;
  readonly standby?: Standby;
  readonly hasKeys?: boolean;
}

async function open({ delayMs = 0, standby, hasKeys = true }: SceneOptions = {}): Promise<Scene> {
  const clock = new ManualClock();
  const server = new MemoryServer({ clock, delayMs: () => delayMs });
  const memory = server.client();
  const log = new KeepAliveLog(memory, clock);
  const connection = new Connection(log, { clock, ttlMs: TTL_MS, staleAfterMs: TTL_MS });
  const session = new Session(connection, { ttl: TTL, fencePrefix: '/_sessions/', onBeat: () => {}, standby });
  const lostAtMs: number[] = [];
  session.lost.add(() => lostAtMs.push(clock.now()));
  const opening = connection.open(10_000);
  await clock.advance(3);
  await opening;
  session.start(() => hasKeys);
  await clock.advance(10);
  return { clock, server, memory, log, session, lostAtMs };
}

test('the lease is given up a ttl after the last answered keepalive was sent, however late its answer came (R5)', async (t) => {
  for (const delayMs of [0, 50, 180, 270]) {
    for (let offset = 0; offset < 1; offset += 0.21) {
      const { clock, server, memory, log, lostAtMs } = await open({ delayMs });
      await clock.advance(offset);
      server.partition(memory);
      await clock.advance(2 * TTL);
      const lastSentMs = log.answeredSendsMs.at(-1) ?? 0;
      t.deepEqual(lostAtMs, [lastSentMs + TTL_MS], `${delayMs} ms each way, cut after ${offset} s`);
    }
  }
});

test('what the stand-in renewed counts from when it was sent, and is asked for before the lease is given up (R5)', async (t) => {
  const standby = new ScriptedStandby();
  const { clock, server, memory, log, session, lostAtMs } = await open({ delayMs: 50, standby, hasKeys: false });
  t.is(standby.guarded?.id, session.leaseId);
  server.partition(memory);
  const renewedAtMs = clock.now() + 1_300;
  // At the last moment: nothing else is to ask before.
  await clock.advance(((session.deadlineMs ?? 0) - clock.now() - 1) / 1_000);
  standby.news = { renewedAtMs };
  await clock.advance(2 * TTL);
  t.true(renewedAtMs > (log.answeredSendsMs.at(-1) ?? 0));
  t.deepEqual(lostAtMs, [renewedAtMs + TTL_MS]);
  t.is(standby.guarded, undefined);
});

test('a lease that the stand-in found gone is given up when that is heard, and another one is guarded (R4)', async (t) => {
  const standby = new ScriptedStandby();
  const { clock, server, memory, session, lostAtMs } = await open({ standby });
  const lease = session.leaseId ?? '';
  server.partition(memory);
  server.model.revoke(lease);
  standby.news = { isGone: true };
  await clock.advance(TTL);
  t.is(lostAtMs.length, 1);
  server.heal(memory);
  await clock.advance(2);
  t.is(lostAtMs.length, 1);
  t.truthy(session.leaseId);
  t.not(session.leaseId, lease);
  t.is(standby.guarded?.id, session.leaseId);
});

test('keys that the stand-in saw standing are verified, and no key is called unverified then (R1)', async (t) => {
  const standby = new ScriptedStandby();
  const { clock, server, memory, session } = await open({ standby });
  const verified: (readonly [string[], number])[] = [];
  let unverified = 0;
  session.verified.add((keys, atMs) => verified.push([[...keys], atMs]));
  session.unverified.add(() => {
    unverified += 1;
  });
  server.partition(memory);
  for (let second = 0; second < 3 * TTL; second += 1) {
    const nowMs = clock.now();
    standby.news = { renewedAtMs: nowMs, verified: { keys: ['/k'], askedAtMs: nowMs } };
    await clock.advance(1);
  }
  t.is(unverified, 0);
  t.true(verified.length > 0);
  t.true(verified.every(([keys]) => keys.join() === '/k'));
  await clock.advance(TTL);
  t.true(unverified > 0 || session.leaseId === undefined);
});

test('the stand-in renews what is overdue, proves its own way once a ttl, and does nothing for who stands still too long', (t) => {
  const well: StandbySituation = {
    nowMs: 100_000,
    ttlMs: 10_000,
    movedMs: 99_900,
    stallLimitMs: 30_000,
    renewedAtMs: 97_500,
    provedMs: 95_000,
  };
  t.is(standbyDuty(well), 'nothing');
  t.is(standbyDuty({ ...well, provedMs: 89_999 }), 'prove');
  t.is(standbyDuty({ ...well, renewedAtMs: 96_000 }), 'renew');
  t.is(standbyDuty({ ...well, renewedAtMs: 96_000, movedMs: 70_001 }), 'renew');
  t.is(standbyDuty({ ...well, renewedAtMs: 96_000, movedMs: 69_999 }), 'nothing');
});

test('a call that waits between two attempts keeps no process alive when its client is closed (S3)', async (t) => {
  const scene = new MemoryScene();
  const timers = new Set<Timer>();
  const clock: Clock = {
    now: () => scene.clock.now(),
    random: () => scene.clock.random(),
    setTimeout: (callback, ms) => {
      const inner = scene.clock.setTimeout(() => {
        timers.delete(timer);
        callback();
      }, ms);
      const timer: Timer = {
        clear: () => {
          timers.delete(timer);
          inner.clear();
        },
      };
      timers.add(timer);
      return timer;
    },
  };
  const store = scene.server.client();
  const client = await connectOver(store, clock, { ttl: 2 });
  scene.server.loseRequests(store, 100);
  const removing = client.removeDir('/d').catch((error: unknown) => error);
  for (let i = 0; i < 40; i += 1) {
    await scene.advance(0.05);
    if (timers.size > 1) break;
  }
  t.true(timers.size > 0, 'it waits for its next attempt');
  await client.close();
  await scene.settle();
  t.is(timers.size, 0);
  t.true((await removing) instanceof ClosedError);
});
