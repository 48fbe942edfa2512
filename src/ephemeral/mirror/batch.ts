import type { Op } from '../../core/store.ts';
import type { Directory, Source } from '../directory.ts';
import { digestOf, encodeMarker, touchedDirs, touchedKeys } from './marker.ts';

/** Pure: what a master writes next. */

/** Operations of a transaction: etcd's default limit is 128, of which one is the marker. */
const CHILD_OPS = 127;
/** Bytes of children in one transaction, well below etcd's 1.5 MiB for a request with the marker beside them. */
const PART_BYTES = 512 * 1024;
/** A marker larger than this orders its readers to read the directory itself, which costs them less than such a message each. */
export const MARKER_BYTES = 512 * 1024;

/** One transaction. */
export interface Batch {
  readonly ops: readonly Op[];
  /** Undefined when only the shadow is brought in line. */
  readonly marker: string | undefined;
  /** Names told of. */
  readonly size: number;
}

/**
 * What is to be told of a directory, and what its plain shadow holds. The shadow of a key is `CHILD`, that of a directory `CHILD/`
 * (no name has a slash), so that a reader in any language sees which is which, and a value stays what it is.
 */
export class MirrorBatch {
  readonly #shadowPrefix: string;
  readonly #lock: string;
  readonly #withValues: boolean;
  #directory: Directory;
  #told: Record<Source, number>;
  readonly #touched: Record<Source, Set<string>> = { keys: new Set(), dirs: new Set() };
  /** What the shadow holds, by what follows its prefix; undefined until it has been read. */
  #shadow: Set<string> | undefined;
  /** Names whose shadow may be wrong. */
  readonly #dirty = new Set<string>();
  #mustTell: boolean;
  /** The next marker's spans begin where readers may not stand. */
  #beginsAnew: boolean;

  /** The directory as told of so far. `mustTell`: no marker says so yet. */
  constructor(shadowPrefix: string, lock: string, withValues: boolean, directory: Directory, mustTell: boolean) {
    this.#shadowPrefix = shadowPrefix;
    this.#lock = lock;
    this.#withValues = withValues;
    this.#directory = directory;
    this.#told = { ...directory.revisions };
    this.#mustTell = mustTell;
    this.#beginsAnew = mustTell;
  }

  /** A name's state changed. */
  touch(source: Source, name: string): void {
    this.#touched[source].add(name);
    this.#dirty.add(name);
  }

  /** The directory was read anew, what happened in between is not known: the next marker makes readers of another one do the same. */
  replace(directory: Directory, changed: Iterable<string>): void {
    this.#directory = directory;
    for (const name of changed) this.#dirty.add(name);
    this.#orderRelist();
  }

  /** What was taken may not have been written: readers are sent to the directory itself, and the shadow is looked at again. */
  startOver(): void {
    this.#shadow = undefined;
    this.#orderRelist();
  }

  /** The shadow was read: what it holds, and of which names it holds something else than it should. */
  shadowIs(held: Set<string>, wrong: Iterable<string>): void {
    this.#shadow = held;
    this.#dirty.clear();
    for (const name of wrong) this.#dirty.add(name);
  }

  get knowsShadow(): boolean {
    return this.#shadow !== undefined;
  }

  /** Whether a marker is due. */
  get hasNews(): boolean {
    return this.#mustTell || this.#touched.keys.size > 0 || this.#touched.dirs.size > 0;
  }

  /** Whether the shadow is known to be right but for what there is to tell. */
  get isRepaired(): boolean {
    return this.#shadow !== undefined && this.#dirty.size <= this.#touched.keys.size + this.#touched.dirs.size;
  }

  /**
   * The news; it counts as written from now on. As much of the shadow goes with the marker as one transaction takes; the rest is
   * repaired after it: listings are made of markers, and a storm is told of no later for its shadow's sake.
   */
  take(): Batch {
    const touched = new Set([...this.#touched.keys, ...this.#touched.dirs]);
    const marker = this.#takeMarker();
    const part = new Part();
    for (const name of this.#shadow ? touched : []) {
      const ops = this.#shadowOps(name);
      if (!part.hasRoomFor(ops)) break;
      part.add(ops);
      this.#wrote(name, ops);
    }
    return { ops: part.ops, marker, size: touched.size };
  }

  #takeMarker(): string {
    let text = this.#news();
    if (Buffer.byteLength(text) > MARKER_BYTES) {
      this.#orderRelist();
      text = this.#news();
    }
    this.#told = { ...this.#directory.revisions };
    this.#touched.keys.clear();
    this.#touched.dirs.clear();
    this.#mustTell = false;
    this.#beginsAnew = false;
    return text;
  }

  #news(): string {
    const { revisions, children } = this.#directory;
    // In order, so that every watcher sees at a glance that no name is there twice, and need not sort.
    const states = (source: Source) =>
      [...this.#touched[source]].sort().map((name) => [name, children.get(name)] as const);
    const span = (source: Source) => ({ from: this.#told[source], to: revisions[source] });
    return encodeMarker({
      lock: this.#lock,
      keys: { ...span('keys'), touched: touchedKeys(states('keys')) },
      dirs: {
        ...span('dirs'),
        touched: touchedDirs(states('dirs').map(([name, child]) => [name, child?.added ?? false])),
      },
      digest: this.#beginsAnew ? digestOf(children) : undefined,
    });
  }

  /** A span from where it ends: whoever stands before that is behind. */
  #orderRelist(): void {
    this.#told = { ...this.#directory.revisions };
    this.#touched.keys.clear();
    this.#touched.dirs.clear();
    this.#mustTell = true;
    this.#beginsAnew = true;
  }

  /** As many repairs of the shadow as one transaction takes. */
  takeRepairs(): Batch {
    const part = new Part();
    for (const name of this.#dirty) {
      const ops = this.#shadowOps(name);
      // One that is too large for any part has one to itself.
      if (part.ops.length > 0 && !part.hasRoomFor(ops)) break;
      part.add(ops);
      this.#wrote(name, ops);
    }
    return { ops: part.ops, marker: undefined, size: 0 };
  }

  /** At most two: what brings the shadow of one name in line. */
  #shadowOps(name: string): Op[] {
    const child = this.#directory.children.get(name);
    const ops: Op[] = [];
    const want = (suffix: string, wanted: boolean, value: Uint8Array | string, always: boolean) => {
      const key = this.#shadowPrefix + suffix;
      const held = this.#shadow?.has(suffix) ?? false;
      if (wanted && (always || !held)) ops.push({ type: 'put', key, value });
      else if (!wanted && held) ops.push({ type: 'delete', target: { key } });
    };
    want(name, child?.key ?? false, child?.value ?? '', this.#withValues);
    want(`${name}/`, (child?.below || child?.added) ?? false, '', false);
    return ops;
  }

  #wrote(name: string, ops: readonly Op[]): void {
    this.#dirty.delete(name);
    const start = this.#shadowPrefix.length;
    for (const op of ops) {
      if (op.type === 'put') this.#shadow?.add(op.key.slice(start));
      else if (op.type === 'delete' && 'key' in op.target) this.#shadow?.delete(op.target.key.slice(start));
    }
  }
}

/** The child operations of one transaction. */
class Part {
  readonly ops: Op[] = [];
  bytes = 0;

  hasRoomFor(ops: readonly Op[]): boolean {
    return this.ops.length + ops.length <= CHILD_OPS && this.bytes + bytesOf(ops) <= PART_BYTES;
  }

  add(ops: readonly Op[]): void {
    this.ops.push(...ops);
    this.bytes += bytesOf(ops);
  }
}

/** Field tags and lengths of an operation's encoding, about. */
const OP_OVERHEAD_BYTES = 16;

function bytesOf(ops: readonly Op[]): number {
  return ops.reduce((sum, op) => sum + OP_OVERHEAD_BYTES + contentBytes(op), 0);
}

/** Names count whatever is done to them: 127 deletions of long ones are too much for a request as well. */
function contentBytes(op: Op): number {
  if (op.type === 'put') return Buffer.byteLength(op.key) + Buffer.byteLength(op.value);
  return 'key' in op.target ? Buffer.byteLength(op.target.key) : 0;
}
