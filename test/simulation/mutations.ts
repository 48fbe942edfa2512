/**
 * The safeguards, each taken away by changing what a process says to its store or hears from it: the library itself knows nothing of
 * it. A simulation that does not notice would prove nothing.
 */
import { CompactedError } from '../../src/core/errors.ts';
import type { Store, Txn, WatchObserver, WatchRequest, WatchStream } from '../../src/core/store.ts';
import { decodeMarker, encodeMarker } from '../../src/ephemeral/mirror/marker.ts';
import type { TrueDirectory } from './history.ts';
import { storeKey } from './store-keys.ts';
import { PassingStore } from './stores.ts';
import type { Mutation, World } from './world.ts';

type StoreKeyKind = ReturnType<typeof storeKey>['kind'];

export const MUTATIONS = {
  /** A master writes whether or not it still holds the lock. */
  'mirror fence': (store, world) => new RewritingStore(store, (txn) => withoutMirrorFence(txn, world)),
  /** A write of the session's may come late. */
  'session fence': (store, world) => new RewritingStore(store, (txn) => withoutCompares(txn, world, ['fence'])),
  /** A registration writes over whatever is there. */
  'ownership compares': (store, world) =>
    new RewritingStore(store, (txn) => withoutCompares(txn, world, ['registration'])),
  /** A marker tells only what has changed in sum. */
  'touched sets': (store, world) => new RewritingStore(store, (txn) => withNetDifferences(txn, world)),
  /** After a reconnect a watch goes on from the store's revision, as etcd3's does, not from its own last event. */
  'event cursor': (store, world) => new WatchChangingStore(store, 'from the header', world),
  /** A watch whose history is gone goes on with what is left. */
  relist: (store, world) => new WatchChangingStore(store, 'past compaction', world),
} satisfies Record<string, Mutation>;

export type MutationName = keyof typeof MUTATIONS;

class RewritingStore extends PassingStore {
  readonly #rewrite: (txn: Txn) => Txn;

  constructor(inner: Store, rewrite: (txn: Txn) => Txn) {
    super(inner);
    this.#rewrite = rewrite;
  }

  override txn(txn: Txn, options: { readonly timeoutMs: number }) {
    return this.inner.txn(this.#rewrite(txn), options);
  }
}

function kindOf(world: World, key: string): StoreKeyKind {
  return storeKey(world.namespace, key).kind;
}

function withoutCompares(txn: Txn, world: World, kinds: readonly StoreKeyKind[]): Txn {
  const isKept = ({ target }: Txn['compares'][number]) =>
    !('key' in target) || !kinds.includes(kindOf(world, target.key));
  return { ...txn, compares: txn.compares.filter(isKept) };
}

/** Of what writes to a mirror; elections keep theirs. */
function withoutMirrorFence(txn: Txn, world: World): Txn {
  const writes = txn.success.some((op) => {
    if (op.type !== 'put') return false;
    const kind = kindOf(world, op.key);
    return kind === 'marker' || kind === 'shadow';
  });
  return writes ? withoutCompares(txn, world, ['lock', 'marker']) : txn;
}

function withNetDifferences(txn: Txn, world: World): Txn {
  const success = txn.success.map((op) => {
    if (op.type !== 'put' || typeof op.value !== 'string' || kindOf(world, op.key) !== 'marker') return op;
    return { ...op, value: netOf(op.key, op.value, world) };
  });
  return { ...txn, success };
}

/** A marker without the names that are at its end what they were at its start. */
function netOf(key: string, value: string, world: World): string {
  const marker = decodeMarker(Buffer.from(value), Number.POSITIVE_INFINITY);
  const at = storeKey(world.namespace, key);
  if (!marker || !('mirror' in at)) return value;
  const { from, to, touched } = marker.keys;
  const lineage = world.oracle.history.current;
  const before = lineage.directory(world.namespace, at.path, from);
  const after = lineage.directory(world.namespace, at.path, to);
  if (!before || !after) return value;
  const isNews = (name: string) => stateOf(before, name, at.values) !== stateOf(after, name, at.values);
  const plain = touched.plain.map((names) => names.filter(isNews));
  const valued = touched.valued.filter(([name]) => isNews(name));
  return encodeMarker({ ...marker, keys: { from, to, touched: { plain, valued } } });
}

function stateOf({ entries, below }: TrueDirectory, name: string, withValues: boolean): string {
  const entry = entries.get(name);
  const value = withValues && entry ? `${entry.created} ${entry.value}` : '';
  return `${entry !== undefined} ${below.has(name)} ${value}`;
}

type WatchFault = 'from the header' | 'past compaction';

/** Ids are unique in the life of a client, so one that was seen before is a watch that goes on after a reconnect. */
class WatchChangingStore extends PassingStore {
  readonly #fault: WatchFault;
  readonly #world: World;
  readonly #requests = new Map<number, WatchRequest>();

  constructor(inner: Store, fault: WatchFault, world: World) {
    super(inner);
    this.#fault = fault;
    this.#world = world;
  }

  override openWatch(observer: WatchObserver): WatchStream {
    const stream = this.inner.openWatch({
      onCreated: (id) => observer.onCreated(id),
      onEvents: (id, events) => observer.onEvents(id, events),
      onCanceled: (id, error) => {
        const request = this.#requests.get(id);
        if (this.#fault !== 'past compaction' || !request || !(error instanceof CompactedError))
          observer.onCanceled(id, error);
        else stream.create(id, { ...request, startRevision: error.compactRevision });
      },
      onEnd: (error) => observer.onEnd(error),
    });
    return {
      create: (id, request) => {
        const first = this.#requests.get(id);
        if (!first) this.#requests.set(id, request);
        const isResumed = first !== undefined && this.#fault === 'from the header';
        stream.create(id, isResumed ? { ...request, startRevision: this.#world.oracle.revision + 1 } : request);
      },
      cancel: (id) => stream.cancel(id),
      close: () => stream.close(),
    };
  }
}
