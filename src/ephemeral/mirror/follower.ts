import { sleep } from '../../core/clock.ts';
import type { Connection } from '../../core/connection.ts';
import { CompactedError, type EphemeralError, toEphemeralError } from '../../core/errors.ts';
import { RELIST_JITTER_MS } from '../../core/list-watch.ts';
import { debugLog } from '../../core/log.ts';
import type { KeyValue, WatchEvent } from '../../core/store.ts';
import type { Watch, WatchGap, WatchHub } from '../../core/watch-hub.ts';
import type { DirectoryKeys, MirrorKeys } from '../keys.ts';
import { type DirectoryRead, readDirectory } from '../read-directory.ts';
import type { Telemetry } from '../stats.ts';
import { applyMarker, decodeMarker, type Marker, type MarkerEffect, type Replica } from './marker.ts';

const log = debugLog('mirror');

export interface FollowerContext {
  readonly connection: Connection;
  readonly hub: WatchHub;
  readonly telemetry: Telemetry;
  readonly directory: DirectoryKeys;
  readonly mirror: MirrorKeys;
  readonly withValues: boolean;
}

export interface FollowerEvents {
  /** The directory was read: at the start, and when the markers could not be followed. */
  onRead(read: DirectoryRead): void;
  /** Markers changed the replica. */
  onChanged(): void;
  /** The marker that stands now; undefined when there is none. */
  onMarker(marker: Marker | undefined): void;
  onRefused(error: EphemeralError): void;
}

/**
 * Follows a directory through its mirror's marker alone. It begins with the directory itself and the marker, read in one
 * transaction, and does so again whenever it has missed something.
 */
export class Follower {
  readonly #context: FollowerContext;
  readonly #events: FollowerEvents;
  readonly #stop = new AbortController();
  #watch: Watch | undefined;
  #replica: Replica | undefined;
  #epoch = 0;
  #marker: Marker | undefined;
  #markerRevision = 0;
  #hadMarker = false;
  #isDetached = false;
  /** It read the directory while nobody listened. */
  #hasReadUnheard = false;

  constructor(context: FollowerContext, events: FollowerEvents) {
    this.#context = context;
    this.#events = events;
    void this.#read();
  }

  /** The directory as followed so far. */
  get replica(): Replica | undefined {
    return this.#replica;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get marker(): Marker | undefined {
    return this.#marker;
  }

  /** Whether there ever was one in this reader's life. */
  get hadMarker(): boolean {
    return this.#hadMarker;
  }

  /** As far as the mirror goes: whether its master is behind, others look after. */
  async isCurrent(): Promise<boolean> {
    const { connection, mirror } = this.#context;
    const answer = await connection.range({ type: 'range', target: { key: mirror.marker }, keysOnly: true });
    return answer.epoch === this.#epoch && (answer.kvs[0]?.modRevision ?? 0) === this.#markerRevision;
  }

  close(): void {
    this.#stop.abort();
    this.#watch?.close();
  }

  /** From here on only `onMarker` is told: the directory is followed by other means. */
  detach(): void {
    this.#isDetached = true;
  }

  /** Goes on from a copy that was followed by other means, unless its own is newer: it may have read anew meanwhile. */
  attach(replica: Replica | undefined, epoch: number | undefined): void {
    this.#isDetached = false;
    if (replica && epoch !== undefined && !this.#isNewerThan(replica, epoch)) {
      this.#replica = replica;
      this.#epoch = epoch;
    } else if (this.#hasReadUnheard) this.#events.onChanged();
    this.#hasReadUnheard = false;
    if (this.#marker) this.#apply(this.#marker);
  }

  #isNewerThan(replica: Replica, epoch: number): boolean {
    const own = this.#replica?.revisions.keys ?? 0;
    return this.#epoch === epoch ? own > replica.revisions.keys : this.#epoch > epoch;
  }

  async #read(): Promise<void> {
    const { connection, directory, mirror, withValues, telemetry } = this.#context;
    const { signal } = this.#stop;
    try {
      const read = await this.#untilNotCompacted(() =>
        readDirectory(connection, directory, mirror, withValues, { signal }),
      );
      if (signal.aborted) return;
      telemetry.count('list.invalidKeys', read.directory.takeUnnameable());
      this.#replica = { children: read.directory.children, revisions: { keys: read.revision, dirs: read.revision } };
      this.#epoch = read.epoch;
      this.#see(read.marker);
      this.#watchFrom(read.revision + 1);
      if (this.#isDetached) this.#hasReadUnheard = true;
      else this.#events.onRead(read);
      this.#events.onMarker(this.#marker);
    } catch (error) {
      this.#failed(error);
    }
  }

  async #untilNotCompacted<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof CompactedError)) throw error;
      }
    }
  }

  #failed(error: unknown): void {
    if (this.#stop.signal.aborted || this.#context.connection.closing.aborted) return;
    this.close();
    this.#events.onRefused(toEphemeralError(error));
  }

  #watchFrom(revision: number): void {
    this.#watch = this.#context.hub.watch({ key: this.#context.mirror.marker }, revision, this.#epoch, {
      onEvents: (events) => this.#heard(events),
      onGap: (gap) => void (gap === 'restored' ? this.#readAnew('the store was restored') : this.#lookAtMarker(gap)),
      onRefused: (error) => this.#failed(error),
    });
  }

  #heard(events: readonly WatchEvent[]): void {
    this.#context.telemetry.count('list.messages');
    let changed = false;
    for (const { type, kv } of events) {
      this.#see(type === 'put' ? kv : undefined);
      if (!this.#marker || this.#isDetached) continue;
      const effect = this.#applied(this.#marker);
      if (effect === 'behind') return;
      if (effect === 'changed') changed = true;
    }
    if (changed) this.#events.onChanged();
    this.#events.onMarker(this.#marker);
  }

  #see(kv: KeyValue | undefined): void {
    this.#marker = kv && decodeMarker(kv.value, kv.modRevision);
    this.#markerRevision = kv?.modRevision ?? 0;
    if (this.#marker) this.#hadMarker = true;
  }

  #applied(marker: Marker): MarkerEffect {
    if (!this.#replica) return 'nothing new';
    const effect = applyMarker(this.#replica, marker);
    if (effect === 'behind') void this.#readAnew('a marker tells of what comes later');
    return effect;
  }

  #apply(marker: Marker): void {
    if (this.#applied(marker) === 'changed') this.#events.onChanged();
  }

  /** History is gone, but a marker that stands as it stood says that nothing was missed. */
  async #lookAtMarker(gap: WatchGap): Promise<void> {
    const { connection, mirror } = this.#context;
    log('watch of %s: %s', mirror.marker, gap);
    try {
      const answer = await connection.range(
        { type: 'range', target: { key: mirror.marker } },
        { signal: this.#stop.signal },
      );
      if (this.#stop.signal.aborted) return;
      if (answer.epoch !== this.#epoch) return await this.#readAnew('the store was restored');
      const stored = answer.kvs[0];
      this.#watchFrom(answer.header.revision + 1);
      if ((stored?.modRevision ?? 0) === this.#markerRevision) return;
      this.#see(stored);
      if (this.#marker && !this.#isDetached) this.#apply(this.#marker);
      this.#events.onMarker(this.#marker);
    } catch (error) {
      this.#failed(error);
    }
  }

  async #readAnew(reason: string): Promise<void> {
    const { connection, mirror, telemetry } = this.#context;
    log('%s: reading the directory anew, %s', mirror.marker, reason);
    telemetry.count('list.relists');
    this.#watch?.close();
    const { clock } = connection;
    await sleep(clock, clock.random() * RELIST_JITTER_MS, this.#stop.signal).catch(() => {});
    if (!this.#stop.signal.aborted) await this.#read();
  }
}
