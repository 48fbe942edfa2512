/**
 * Where the time of one change goes, on its way to 150 watchers in this process, each with a connection of its own:
 * `npx tsx benchmarks/stages/main.ts` writes `benchmarks/results/stages.json`. Moments are taken where the store is called and where
 * it tells of events, so that what lies between two of them is etcd with gRPC on both sides, or the library.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type {
  CallOptions,
  Store,
  Txn,
  TxnResult,
  WatchEvent,
  WatchObserver,
  WatchStream,
} from '../../src/core/store.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { changes, type Ephemeral } from '../../src/index.ts';
import { PassingStore } from '../../test/simulation/stores.ts';
import { connectOver } from '../../test/support/space.ts';
import { FOLDER } from '../contestants.ts';
import { machine } from '../environment.ts';
import { type EtcdServer, openServer } from '../etcd-server.ts';
import { CHANGE_N } from '../options.ts';

const VIAS = ['direct', 'mirror'] as const;
type Via = (typeof VIAS)[number];

const COUNT = 300;
/** Until everything is compiled that runs with each change. */
const WARM = 100;
/** More than what lies between two markers, so that each change is a first one. */
const INTERVAL_MS = 60;
const TTL = 10;
const DIRECTORY = '/d';

/** When what happened to the change under way; a moment that comes more than once is kept as its first and its last. */
class Moments {
  readonly first = new Map<string, number>();
  readonly last = new Map<string, number>();

  mark(name: string): void {
    const now = performance.now();
    if (!this.first.has(name)) this.first.set(name, now);
    this.last.set(name, now);
  }
}

let moments = new Moments();

class MarkingStore extends PassingStore {
  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const [op] = txn.success;
    const key = op?.type === 'put' ? op.key : op?.type === 'delete' && 'key' in op.target ? op.target.key : '';
    moments.mark(isOfMirror(key) ? 'the master writes' : 'the change is written');
    return this.inner.txn(txn, options);
  }

  override openWatch(observer: WatchObserver): WatchStream {
    return this.inner.openWatch({
      onCreated: (id) => observer.onCreated(id),
      onEvents: (id, events: readonly WatchEvent[]) => {
        moments.mark(events.some(({ kv }) => isOfMirror(kv.key)) ? 'a marker is heard' : 'the change is heard');
        observer.onEvents(id, events);
      },
      onCanceled: (id, error) => observer.onCanceled(id, error),
      onEnd: (error) => observer.onEnd(error),
    });
  }
}

function isOfMirror(key: string): boolean {
  return key.includes('/_watcher');
}

function connect(server: EtcdServer, clock: Clock, namespace: string): Promise<Ephemeral> {
  const store: Store = new MarkingStore(new EtcdStore({ hosts: server.endpoint, clock }));
  return connectOver(store, clock, { namespace, ttl: TTL });
}

/** Of each stage its durations, in ms. */
type Stages = Record<string, number[]>;

async function measure(server: EtcdServer, via: Via): Promise<Stages> {
  const clock = systemClock();
  const namespace = `${server.namespace}/${via}`;
  const clients: Ephemeral[] = [];
  let missing = 0;
  let allHave: (() => void) | undefined;
  for (let i = 0; i < CHANGE_N; i += 1) {
    const client = await connect(server, clock, namespace);
    clients.push(client);
    await new Promise<void>((resolve, reject) => {
      client
        .list(DIRECTORY, { watch: true, via, missing: 'wait' })
        .pipe(changes())
        .subscribe({
          next: ({ added, removed }) => {
            resolve();
            if (added.length + removed.length === 0) return;
            missing -= 1;
            if (missing > 0) return;
            moments.mark('all have it');
            allHave?.();
          },
          error: reject,
        });
    });
  }
  const changer = await connect(server, clock, namespace);
  clients.push(changer);
  await (await changer.addKey('/warm', '')).remove();
  await sleep(1_000);
  const stages: Stages = {};
  let remove: (() => Promise<void>) | undefined;
  for (let i = 0; i < WARM + COUNT; i += 1) {
    await sleep(INTERVAL_MS);
    moments = new Moments();
    missing = CHANGE_N;
    const all = new Promise<void>((resolve) => {
      allHave = resolve;
    });
    moments.mark('begin');
    if (remove) {
      await Promise.all([all, remove()]);
      remove = undefined;
    } else {
      const [, registration] = await Promise.all([all, changer.addKey(`${DIRECTORY}/probe`, '')]);
      remove = () => registration.remove();
    }
    if (i >= WARM) note(stages, via, moments);
  }
  await Promise.all(clients.map((client) => client.close()));
  return stages;
}

function note(stages: Stages, via: Via, { first, last }: Moments): void {
  const heard = via === 'mirror' ? 'a marker is heard' : 'the change is heard';
  const path: readonly (readonly [stage: string, atMs: number | undefined])[] = [
    ['the library, until the change is written', first.get('the change is written')],
    ...(via === 'mirror'
      ? ([
          ['etcd and gRPC, until the master hears of it', first.get('the change is heard')],
          ['the library, until the master writes its marker', first.get('the master writes')],
        ] as const)
      : []),
    ['etcd and gRPC, until the first watcher hears of it', first.get(heard)],
    ['until the last watcher hears of it', last.get(heard)],
    ['the library, until the last watcher has it', first.get('all have it')],
  ];
  let beforeMs = first.get('begin') ?? Number.NaN;
  const add = (stage: string, ms: number) => {
    stages[stage] ??= [];
    stages[stage].push(Math.round(ms * 1_000) / 1_000);
  };
  for (const [stage, atMs = Number.NaN] of path) {
    add(stage, atMs - beforeMs);
    beforeMs = atMs;
  }
  add('all together', beforeMs - (first.get('begin') ?? Number.NaN));
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const server = await openServer(undefined, false);
try {
  const results: Record<string, Stages> = {};
  for (const via of VIAS) {
    results[via] = await measure(server, via);
    process.stdout.write(`${via}, ${CHANGE_N} watchers, medians of ${COUNT} changes\n`);
    for (const [stage, values] of Object.entries(results[via])) {
      process.stdout.write(`  ${median(values).toFixed(2).padStart(6)} ms  ${stage}\n`);
    }
  }
  const environment = { ...machine(), etcd: server.version, fsync: server.fsync };
  const file = join(FOLDER, 'results', 'stages.json');
  writeFileSync(file, `${JSON.stringify({ environment, watchers: CHANGE_N, results })}\n`);
} finally {
  await server.close();
}
