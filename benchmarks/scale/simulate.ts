/**
 * The mirror at sizes that need no etcd to be looked at: what a master makes of a churn, and what a watcher makes of that. Prints one
 * JSON object. The code is the library's own; only the store is left out.
 */
import type { KeyValue, Op, WatchEvent } from '../../src/core/store.ts';
import { Directory } from '../../src/ephemeral/directory.ts';
import { type Batch, MirrorBatch } from '../../src/ephemeral/mirror/batch.ts';
import { applyMarker, decodeMarker, digestOf, type Replica, touchedCount } from '../../src/ephemeral/mirror/marker.ts';
import { MARKER_GAP_MS } from '../../src/ephemeral/mirror/master.ts';
import { heapBytes } from '../fleet/heap.ts';
import { mean } from '../statistics.ts';

const CHILDREN = [1_000, 10_000, 100_000, 1_000_000];
/** Markers of one kind that are looked at, after some that only warm up: fewer where each is large. */
const MARKERS = { small: 200, large: 10 };
const LARGE = 1_000;
const WARM = 5;
const PREFIXES = { keys: '/services/web/', dirs: '/_dirs/services/web/' } as const;
const SHADOW = '/_watcherDir/services/web//';
const VALUE = Buffer.alloc(0);

/** Every instance replaced once in so many seconds: a name that goes and one that comes. */
const CHURNS = [
  { churn: 'each replaced once a day', seconds: 86_400 },
  { churn: 'each replaced once an hour', seconds: 3_600 },
  { churn: 'all replaced in 10 minutes', seconds: 600 },
  { churn: 'all replaced in 10 seconds', seconds: 10 },
] as const;

export interface ChildrenRow {
  readonly children: number;
  /** Of a directory that follows its own keys, as a master and a direct watcher hold it. */
  readonly heapAChild: number;
  readonly digestMs: number;
  readonly sortedNamesMs: number;
}

export interface MarkerRow {
  readonly children: number;
  readonly churn: string;
  readonly namesASecond: number;
  readonly markersASecond: number;
  readonly namesAMarker: number;
  readonly markerBytes: number;
  /** It was too large: it sends its readers to the directory itself. */
  readonly ordersRelist: boolean;
  readonly shadowOperations: number;
  readonly shadowBytes: number;
  readonly transactions: number;
  /** Means, of CPU rather than of time: others may use the machine. */
  readonly masterCpuMs: number;
  readonly watcherCpuMs: number;
}

const nameOf = (i: number) => `instance-${String(i).padStart(8, '0')}`;

function key(i: number, revision: number): KeyValue {
  return {
    key: PREFIXES.keys + nameOf(i),
    value: VALUE,
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: '0',
  };
}

function* keys(count: number): Iterable<KeyValue> {
  for (let i = 0; i < count; i += 1) yield key(i, i + 1);
}

function directoryOf(count: number): Directory {
  const directory = new Directory(PREFIXES, false, { keys: count, dirs: count });
  directory.load('keys', [...keys(count)]);
  return directory;
}

/** Milliseconds of CPU. */
function timed<T>(work: () => T): [result: T, ms: number] {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1_000];
}

function lookAtChildren(children: number): ChildrenRow {
  const before = heapBytes();
  const directory = directoryOf(children);
  const heapAChild = (heapBytes() - before) / children;
  const [, digestMs] = timed(() => digestOf(directory.children));
  const [, sortedNamesMs] = timed(() => directory.children.names());
  return { children, heapAChild, digestMs, sortedNamesMs };
}

function bytesOf(ops: readonly Op[]): number {
  return ops.reduce((sum, op) => {
    if (op.type === 'put') return sum + op.key.length + op.value.length;
    return op.type === 'delete' && 'key' in op.target ? sum + op.target.key.length : sum;
  }, 0);
}

/** One directory under churn, its master's batch, and one watcher. */
class Churn {
  readonly #directory: Directory;
  readonly #batch: MirrorBatch;
  readonly #replica: Replica;
  #oldest = 0;
  #newest: number;
  #revision: number;

  constructor(children: number) {
    this.#directory = directoryOf(children);
    this.#batch = new MirrorBatch(
      SHADOW,
      '/_watcherLock/services/web//0000000000000001',
      false,
      this.#directory,
      false,
    );
    this.#batch.shadowIs(new Set(this.#directory.children.names()), []);
    const revisions = { keys: children, dirs: children };
    this.#replica = { children: directoryOf(children).children, revisions };
    this.#newest = children;
    this.#revision = children;
  }

  /** So many names go or come; what the master then writes, and what the watcher makes of it. */
  marker(names: number): { batches: Batch[]; masterMs: number; watcherMs: number; told: number } {
    const events = Array.from({ length: names }, (_, i) => this.#event(i % 2 === 0 ? 'delete' : 'put'));
    const [batches, masterMs] = timed(() => {
      for (const event of events) {
        const name = this.#directory.apply('keys', event);
        if (name !== undefined) this.#batch.touch('keys', name);
      }
      const written = [this.#batch.take()];
      while (!this.#batch.isRepaired) written.push(this.#batch.takeRepairs());
      return written;
    });
    const bytes = Buffer.from(batches[0]?.marker ?? '');
    const [told, watcherMs] = timed(() => {
      const marker = decodeMarker(bytes, this.#revision + 1);
      if (!marker) throw new Error('the marker cannot be read');
      applyMarker(this.#replica, marker);
      this.#replica.children.now();
      return touchedCount(marker);
    });
    return { batches, masterMs, watcherMs, told };
  }

  #event(type: 'put' | 'delete'): WatchEvent {
    this.#revision += 1;
    const which = type === 'put' ? this.#newest : this.#oldest;
    if (type === 'put') this.#newest += 1;
    else this.#oldest += 1;
    return { type, kv: key(which, this.#revision) };
  }
}

function lookAtChurn(children: number, churn: string, seconds: number): MarkerRow {
  const namesASecond = (2 * children) / seconds;
  const markersASecond = Math.min(namesASecond, 1_000 / MARKER_GAP_MS);
  const namesAMarker = Math.max(1, Math.round(namesASecond / markersASecond));
  const directory = new Churn(children);
  const count = WARM + (namesAMarker < LARGE ? MARKERS.small : MARKERS.large);
  const looks = Array.from({ length: count }, () => directory.marker(namesAMarker)).slice(WARM);
  const { batches, told } = looks.at(-1) as (typeof looks)[number];
  const operations = batches.map(({ ops }) => ops);
  return {
    children,
    churn,
    namesASecond,
    markersASecond,
    namesAMarker,
    markerBytes: Buffer.byteLength(batches[0]?.marker ?? ''),
    ordersRelist: told === 0,
    shadowOperations: operations.reduce((sum, { length }) => sum + length, 0),
    shadowBytes: operations.reduce((sum, ops) => sum + bytesOf(ops), 0),
    transactions: operations.length,
    masterCpuMs: mean(looks.map(({ masterMs }) => masterMs)),
    watcherCpuMs: mean(looks.map(({ watcherMs }) => watcherMs)),
  };
}

const children = CHILDREN.map(lookAtChildren);
const markers = CHILDREN.flatMap((count) => CHURNS.map(({ churn, seconds }) => lookAtChurn(count, churn, seconds)));
process.stdout.write(JSON.stringify({ children, markers }));
