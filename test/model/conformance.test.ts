/** The model says what a real etcd says, to random programs. */
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import type { Store } from '../../src/core/store.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { ManualClock } from '../../src/memory/manual-clock.ts';
import { MemoryServer } from '../../src/memory/memory-server.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { until } from '../support/wait.ts';
import { type Command, program } from './program.ts';
import { World } from './world.ts';

const CALL = { timeoutMs: 10_000 };
/** etcd looks 10 times a second after watches that lag. Short, as a failing program is run again and again to make it smaller. */
const WATCH_PATIENCE_MS = 3_000;
const TIME_LIMIT_MS = 120_000;
const RUNS = Number(process.env.MODEL_RUNS ?? 60);
/** What a program leaves behind: keys, leases, and what goes with them. */
const EPILOGUE: readonly Command[] = [
  { do: 'range', range: { type: 'range', target: { prefix: '' } } },
  ...[1, 2, 3].map((lease): Command => ({ do: 'timeToLive', lease, withKeys: true })),
  ...[1, 2, 3].map((lease): Command => ({ do: 'revoke', lease })),
  { do: 'range', range: { type: 'range', target: { prefix: '' } } },
];

let etcd: EtcdProcess;
let store: Store;
let dropsDeletesAtCompaction = false;

test.before(async () => {
  etcd = await startEtcd();
  store = new EtcdStore({ hosts: etcd.endpoint });
  await store.connect(CALL);
  dropsDeletesAtCompaction = await losesDeletions();
});

test.after.always(async () => {
  store?.close();
  await etcd?.destroy();
});

/** `physical`: answered when history is really gone, not only when that is decided. */
async function compactEtcd(revision: number): Promise<void> {
  const body = JSON.stringify({ revision, physical: true });
  const response = await fetch(`${etcd.endpoint}/v3/kv/compaction`, { method: 'POST', body });
  if (!response.ok) throw new Error(await response.text());
}

async function compactModel(server: MemoryServer, revision: number): Promise<void> {
  try {
    server.compact(revision);
  } catch {
    throw new Error('refused');
  }
}

/** Whether this etcd forgets a deletion when its very revision is compacted: old ones do (etcd#18089). */
async function losesDeletions(): Promise<boolean> {
  const world = await World.create(store, compactEtcd);
  const onKey = { compares: [], failure: [] };
  await world.run({ do: 'txn', ...onKey, success: [{ type: 'put', key: 'a', value: '', lease: 0 }] });
  await world.run({ do: 'txn', ...onKey, success: [{ type: 'delete', target: { key: 'a' } }] });
  await world.run({ do: 'compact', revision: 2 });
  await world.run({ do: 'watch', target: { key: 'a' }, start: 2 });
  await world.run({ do: 'txn', ...onKey, success: [{ type: 'put', key: 'a', value: '', lease: 0 }] });
  await until(() => world.watches[0]?.messages.flat().some(({ type }) => type === 'put'), 'the put');
  await world.close();
  return world.watches[0]?.messages.flat()[0]?.type === 'put';
}

async function compareWith(commands: readonly Command[]): Promise<void> {
  const clock = new ManualClock();
  const server = new MemoryServer({ clock, dropsDeletesAtCompaction });
  const client = server.client();
  await client.connect(CALL);
  const model = await World.create(client, (revision) => compactModel(server, revision));
  const real = await World.create(store, compactEtcd);
  /** What etcd has still to tell, it must tell before a compaction takes it away, and before it is compared. */
  const level = async () => {
    await clock.advance(0);
    await until(
      () => real.streamError || real.progress() === model.progress(),
      'etcd to tell as much as the model',
      WATCH_PATIENCE_MS,
    ).catch(() => {
      throw new Error(`etcd told ${JSON.stringify(real.told())}, the model ${JSON.stringify(model.told())}`);
    });
  };
  try {
    for (const command of [...commands, ...EPILOGUE]) {
      if (command.do === 'compact') for (const world of [real, model]) await world.touchWatched();
      if (command.do === 'compact' || command.do === 'cancel') await level();
      same(command, await real.run(command), await model.run(command));
    }
    await level();
    // Had etcd more to tell than the model, it would come before this.
    for (const world of [real, model]) await world.putAndWatch('end');
    await level();
    same('all watches', real.told(), model.told());
    if (real.hasSplitRevision() || model.hasSplitRevision()) throw new Error('a revision came in two messages');
    if (real.streamError) throw real.streamError;
  } finally {
    await real.close();
    await model.close();
    server.close();
  }
}

function same(what: Command | string, real: unknown, model: unknown): void {
  if (isDeepStrictEqual(real, model)) return;
  throw new Error(`${JSON.stringify(what)}: etcd ${JSON.stringify(real)}, the model ${JSON.stringify(model)}`);
}

test.serial('the model answers and tells watches what etcd does', async (t) => {
  await fc.assert(fc.asyncProperty(program, compareWith), {
    numRuns: RUNS,
    includeErrorInReport: true,
    // What fails for want of a message takes its time: a smaller program is worth some, not all.
    interruptAfterTimeLimit: TIME_LIMIT_MS,
    ...(process.env.SEED ? { seed: Number(process.env.SEED) } : {}),
  });
  t.pass();
});
