import { backoffMs } from '../../core/backoff.ts';
import { sleep, type Timer } from '../../core/clock.ts';
import type { Connection } from '../../core/connection.ts';
import type { Lock } from '../../core/election.ts';
import { CompactedError, EphemeralError, NoSpaceError, ValueTooLargeError } from '../../core/errors.ts';
import { ListWatch } from '../../core/list-watch.ts';
import { debugLog, messageOf } from '../../core/log.ts';
import { readSnapshot } from '../../core/snapshot.ts';
import { firstKey, type KeyValue, type Op, type Txn, type TxnResult, type WatchEvent } from '../../core/store.ts';
import type { WatchHub } from '../../core/watch-hub.ts';
import { Directory, type Source } from '../directory.ts';
import type { DirectoryKeys, MirrorKeys } from '../keys.ts';
import type { Telemetry } from '../stats.ts';
import { type Batch, MirrorBatch } from './batch.ts';
import { decodeMarker, encodeMarker, type Marker, NOTHING_TOUCHED } from './marker.ts';
import { compareShadow } from './shadow.ts';

const log = debugLog('mirror');

/**
 * At least so much (ms) lies between two markers of a directory after a first one that goes out at once: 400 joins spread over a
 * second are then some twenty messages a watcher instead of hundreds, and a single change waits for nothing.
 */
export const MARKER_GAP_MS = 50;
/**
 * A first master tells also what happened in so many revisions before it was elected: its watchers, who read the directory while
 * they stood for election, would otherwise all be behind its first marker.
 */
const HEAD_START_REVISIONS = 500;
/** A store that is full is asked again this often: within any ttl, or the master would be taken for one that hangs. */
const REFUSED_BACKOFF = { firstMs: 500, maxMs: 1_000 };
const RETRY_BACKOFF = { firstMs: 20, maxMs: 1_000 };
const SOURCES: readonly Source[] = ['keys', 'dirs'];

export interface MasterContext {
  readonly connection: Connection;
  readonly hub: WatchHub;
  readonly telemetry: Telemetry;
  readonly directory: DirectoryKeys;
  readonly mirror: MirrorKeys;
  readonly withValues: boolean;
  /** The store does not let this user be master. */
  readonly onRefused: (error: EphemeralError) => void;
}

/** The write was refused because the lock is not ours any more. */
class DeposedError extends Error {}

/**
 * Copies one directory's membership to its mirror for as long as its lock stands. Every write compares the lock's create revision
 * and the marker's mod revision; one transaction is under way at a time.
 */
export class MirrorMaster {
  readonly #context: MasterContext;
  readonly #lock: Lock;
  readonly #stop = new AbortController();
  #directory: Directory | undefined;
  #batch: MirrorBatch | undefined;
  #listWatch: ListWatch | undefined;
  /** Mod revision of the marker as we know it; 0: there is none. */
  #markerRevision = 0;
  #lastMarkerMs = Number.NEGATIVE_INFINITY;
  #isWriting = false;
  #timer: Timer | undefined;
  #endLag: (() => void) | undefined;
  #settled: Promise<unknown>;

  /** @param former when nothing of an earlier mastership of ours is under way any more: the lock may be the same, so it is not fenced off */
  constructor(context: MasterContext, lock: Lock, former: Promise<unknown>) {
    this.#context = context;
    this.#lock = lock;
    this.#settled = former;
    context.telemetry.count('mirror.masterships');
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
    this.#timer?.clear();
    this.#listWatch?.close();
    this.#endLag?.();
  }

  /** Once stopped: resolves when its last transaction is answered or given up. */
  get settled(): Promise<unknown> {
    return this.#settled;
  }

  get #clock() {
    return this.#context.connection.clock;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    await this.#settled;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await this.#takeOver();
        return;
      } catch (error) {
        if (!(await this.#goesOn(error, failures))) return;
      }
    }
  }

  /** Goes on where the marker that stands ends, so that what a dead master left untold is told; else begins anew. */
  async #takeOver(): Promise<void> {
    const { connection, mirror } = this.#context;
    const answer = await connection.range(
      { type: 'range', target: { key: mirror.marker } },
      { signal: this.#stop.signal },
    );
    const stored = answer.kvs[0];
    const marker = stored && decodeMarker(stored.value, stored.modRevision);
    this.#markerRevision = stored?.modRevision ?? 0;
    if (marker) await this.#claim(marker);
    const start = Math.max(1, this.#lock.createRevision - HEAD_START_REVISIONS);
    const told = marker ? { keys: marker.keys.to, dirs: marker.dirs.to } : { keys: start, dirs: start };
    const directory = (await this.#readAt(told)) ?? (await this.#readNow());
    if (this.#stop.signal.aborted) return;
    const { revisions } = directory.directory;
    const isClaimed = marker !== undefined && directory.isTold;
    log('master of %s from revisions %o, %s', mirror.marker, revisions, isClaimed ? 'going on' : 'beginning anew');
    this.#begin(directory.directory, directory.epoch, isClaimed);
  }

  /** Puts our name into the marker before anything is read: from here on no former master can write. */
  async #claim(marker: Marker): Promise<void> {
    const { keys, dirs } = marker;
    const text = encodeMarker({
      lock: this.#lock.key,
      keys: { from: keys.to, to: keys.to, touched: NOTHING_TOUCHED.keys },
      dirs: { from: dirs.to, to: dirs.to, touched: NOTHING_TOUCHED.dirs },
    });
    await this.#write([], text);
    this.#lastMarkerMs = Number.NEGATIVE_INFINITY;
  }

  /** The directory as it was when it was last told of; undefined when that is compacted. */
  async #readAt(revisions: Record<Source, number>) {
    const { connection, directory: keys } = this.#context;
    const options = { keysOnly: !this.#context.withValues, signal: this.#stop.signal };
    const { link } = connection;
    try {
      const atKeys = await readSnapshot(connection, [{ prefix: keys.children }], {
        ...options,
        revision: revisions.keys,
      });
      const atDirs = await readSnapshot(connection, [{ prefix: keys.addedBelow }], {
        ...options,
        revision: revisions.dirs,
      });
      if (atKeys.epoch !== atDirs.epoch || atKeys.epoch !== link?.epoch) return undefined;
      return {
        directory: this.#load(revisions, atKeys.targets[0], atDirs.targets[0]),
        epoch: atKeys.epoch,
        isTold: true,
      };
    } catch (error) {
      if (!(error instanceof CompactedError)) throw error;
      return undefined;
    }
  }

  async #readNow() {
    const { connection, directory: keys } = this.#context;
    const now = await readSnapshot(connection, [{ prefix: keys.children }, { prefix: keys.addedBelow }], {
      keysOnly: !this.#context.withValues,
      signal: this.#stop.signal,
    });
    const revisions = { keys: now.revision, dirs: now.revision };
    return { directory: this.#load(revisions, now.targets[0], now.targets[1]), epoch: now.epoch, isTold: false };
  }

  #load(revisions: Record<Source, number>, keys: readonly KeyValue[] = [], dirs: readonly KeyValue[] = []): Directory {
    const { directory: at, withValues } = this.#context;
    const directory = new Directory({ keys: at.children, dirs: at.addedBelow }, withValues, revisions);
    directory.load('keys', keys);
    directory.load('dirs', dirs);
    return directory;
  }

  #begin(directory: Directory, epoch: number, isClaimed: boolean): void {
    const { connection, hub, directory: keys, mirror, withValues, telemetry } = this.#context;
    this.#directory = directory;
    const { revisions } = directory;
    this.#batch = new MirrorBatch(mirror.marker, this.#lock.key, withValues, directory, !isClaimed);
    this.#listWatch = new ListWatch(
      connection,
      hub,
      [{ prefix: keys.children }, { prefix: keys.addedBelow }],
      { keysOnly: !withValues, from: { revisions: [revisions.keys, revisions.dirs], epoch } },
      {
        onEvents: (target, events) => this.#heard(SOURCES[target] ?? 'keys', events),
        onSnapshot: (snapshot) => {
          const now = { keys: snapshot.revision, dirs: snapshot.revision };
          this.#readAnew(this.#load(now, snapshot.targets[0], snapshot.targets[1]));
        },
        onRefused: (error) => this.#refused(error),
        onRelist: () => telemetry.count('list.relists'),
      },
    );
    void this.#pump();
  }

  #heard(source: Source, events: readonly WatchEvent[]): void {
    const { telemetry } = this.#context;
    if (!this.#directory || !this.#batch) return;
    let refreshes = 0;
    for (const event of events) {
      const name = this.#directory.apply(source, event);
      if (name === undefined) refreshes += 1;
      else this.#batch.touch(source, name);
    }
    const unnameable = this.#directory.takeUnnameable();
    telemetry.count('list.messages');
    telemetry.count('list.invalidKeys', unnameable);
    telemetry.count('mirror.refreshesCollapsed', refreshes - unnameable);
    if (!this.#batch.hasNews) return;
    this.#endLag ??= telemetry.time('mirror.lag');
    void this.#pump();
  }

  #readAnew(directory: Directory): void {
    const before = this.#directory;
    if (!before || !this.#batch) return;
    this.#directory = directory;
    this.#batch.replace(directory, new Set([...before.children.names(), ...directory.children.names()]));
    void this.#pump();
  }

  /** Writes while there is anything to write. Changes come first, then repairs of the plain shadow. */
  async #pump(): Promise<void> {
    const batch = this.#batch;
    if (this.#isWriting || !batch || this.#stop.signal.aborted) return;
    this.#isWriting = true;
    let failures = 0;
    try {
      while (!this.#stop.signal.aborted) {
        const waitMs = this.#lastMarkerMs + MARKER_GAP_MS - this.#clock.now();
        if (batch.hasNews && waitMs > 0 && batch.isRepaired) {
          this.#timer?.clear();
          this.#timer = this.#clock.setTimeout(() => void this.#pump(), waitMs);
          return;
        }
        try {
          if (batch.hasNews && waitMs <= 0) await this.#writeBatch(batch.take());
          else if (!batch.knowsShadow) await this.#readShadow(batch);
          else if (!batch.isRepaired) await this.#writeBatch(batch.takeRepairs());
          else return;
          failures = 0;
        } catch (error) {
          failures += 1;
          if (!(await this.#goesOn(error, failures))) return;
          batch.startOver();
        }
      }
    } finally {
      this.#isWriting = false;
    }
  }

  async #readShadow(batch: MirrorBatch): Promise<void> {
    const { connection, mirror, withValues } = this.#context;
    const shadow = await readSnapshot(connection, [{ prefix: mirror.marker }], {
      keysOnly: !withValues,
      signal: this.#stop.signal,
    });
    if (!this.#directory) return;
    const { held, wrong } = compareShadow(shadow.targets[0] ?? [], mirror.marker, this.#directory.children, withValues);
    batch.shadowIs(held, wrong);
  }

  async #writeBatch(batch: Batch): Promise<void> {
    const endLag = this.#endLag;
    if (batch.marker !== undefined) {
      this.#lastMarkerMs = this.#clock.now();
      this.#endLag = undefined;
    }
    await this.#write(batch.ops, batch.marker);
    endLag?.();
    if (batch.size > 0) log('%s tells of %d names', this.#context.mirror.marker, batch.size);
  }

  /** One transaction, until it is known to be done. Doing it twice does no harm: both times it says the same. */
  async #write(ops: readonly Op[], marker: string | undefined): Promise<void> {
    if (ops.length === 0 && marker === undefined) return;
    const { mirror, telemetry } = this.#context;
    const told: Op[] = marker === undefined ? [] : [{ type: 'put', key: mirror.marker, value: marker }];
    try {
      const answer = await this.#txn({
        compares: [
          { target: { key: this.#lock.key }, field: 'create', op: '=', operand: this.#lock.createRevision },
          { target: { key: mirror.marker }, field: 'mod', op: '=', operand: this.#markerRevision },
        ],
        success: [...ops, ...told],
        failure: [
          { type: 'range', target: { key: this.#lock.key }, keysOnly: true },
          { type: 'range', target: { key: mirror.marker } },
        ],
      });
      telemetry.count('mirror.transactions');
      if (!answer.succeeded) this.#notDone(firstKey(answer.results[0]), firstKey(answer.results[1]), marker);
      else if (marker !== undefined) this.#markerRevision = answer.header.revision;
    } catch (error) {
      if (!(error instanceof ValueTooLargeError) || marker !== undefined) throw error;
      telemetry.say('warn', `${mirror.marker}: a value is too large for the plain shadow and is left out of it`);
    }
  }

  #txn(txn: Txn): Promise<TxnResult> {
    const answer = this.#context.connection.txn(txn, { signal: this.#stop.signal, untilAnswered: true });
    this.#settled = answer.catch(() => {});
    return answer;
  }

  /** Returns when the write had been done after all, by an attempt whose answer was lost. */
  #notDone(lock: KeyValue | undefined, stored: KeyValue | undefined, marker: string | undefined): void {
    if (lock?.createRevision !== this.#lock.createRevision) throw new DeposedError('the lock is not ours any more');
    this.#markerRevision = stored?.modRevision ?? 0;
    const isOurs = stored !== undefined && Buffer.from(stored.value).toString() === marker;
    if (!isOurs) throw new MarkerMovedError('somebody else wrote the marker, or deleted it');
  }

  /** After a failed write: whether to go on. A marker that cannot be written is deleted, which tells everyone to watch directly. */
  async #goesOn(error: unknown, failures: number): Promise<boolean> {
    const { mirror, telemetry, connection } = this.#context;
    const { signal } = this.#stop;
    if (signal.aborted || connection.closing.aborted || error instanceof DeposedError) return false;
    log('%s: %s', mirror.marker, messageOf(error));
    if (error instanceof EphemeralError && !error.retryable) {
      this.#refused(error);
      return false;
    }
    if (error instanceof NoSpaceError) {
      telemetry.say('error', `${mirror.marker} cannot be written, its watchers go direct: ${error.message}`);
      await this.#deleteMarker();
    }
    const policy = error instanceof NoSpaceError ? REFUSED_BACKOFF : RETRY_BACKOFF;
    await sleep(this.#clock, backoffMs(policy, failures, this.#clock.random()), signal).catch(() => {});
    return !signal.aborted;
  }

  async #deleteMarker(): Promise<void> {
    try {
      await this.#txn({
        compares: [{ target: { key: this.#lock.key }, field: 'create', op: '=', operand: this.#lock.createRevision }],
        success: [{ type: 'delete', target: { key: this.#context.mirror.marker } }],
      });
      this.#markerRevision = 0;
    } catch (error) {
      log('the marker could not be deleted: %s', messageOf(error));
    }
  }

  #refused(error: EphemeralError): void {
    this.stop();
    this.#context.onRefused(error);
  }
}

class MarkerMovedError extends Error {}
