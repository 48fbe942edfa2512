import { sleep } from './clock.ts';
import type { Connection } from './connection.ts';
import { CompactedError, type EphemeralError, toEphemeralError } from './errors.ts';
import { debugLog, messageOf } from './log.ts';
import { readSnapshot, type Snapshot, type SnapshotTarget } from './snapshot.ts';
import type { WatchEvent } from './store.ts';
import type { Watch, WatchGap, WatchHub } from './watch-hub.ts';

const log = debugLog('list-watch');

/** Many clients lose their place at one moment; so much (ms) they are spread over before they read anew. */
export const RELIST_JITTER_MS = 500;

export interface ListWatchEvents {
  /** The targets as they were at one revision: at the start, and after a gap. */
  onSnapshot(snapshot: Snapshot, epoch: number): void;
  /** What happened to one of the targets since, each event once, in order within the target. */
  onEvents(target: number, events: readonly WatchEvent[]): void;
  /** It has ended: the store will not let us. */
  onRefused(error: EphemeralError): void;
  onRelist?(gap: WatchGap): void;
}

export interface ListWatchOptions {
  readonly keysOnly: boolean;
  /** Keys that are read with each snapshot, after the targets, and not watched. */
  readonly beside?: readonly string[] | undefined;
  /** Begin here instead of reading first: the snapshot is known already. */
  readonly from?: { readonly revisions: readonly number[]; readonly epoch: number } | undefined;
}

/** A snapshot at revision R, then the events from R + 1 on; again from the start after a gap. */
export class ListWatch {
  readonly #connection: Connection;
  readonly #hub: WatchHub;
  readonly #targets: readonly SnapshotTarget[];
  readonly #options: ListWatchOptions;
  readonly #events: ListWatchEvents;
  readonly #stop = new AbortController();
  #watches: Watch[] = [];

  constructor(
    connection: Connection,
    hub: WatchHub,
    targets: readonly SnapshotTarget[],
    options: ListWatchOptions,
    events: ListWatchEvents,
  ) {
    this.#connection = connection;
    this.#hub = hub;
    this.#targets = targets;
    this.#options = options;
    this.#events = events;
    if (options.from) this.#watchFrom(options.from.revisions, options.from.epoch);
    else void this.#list();
  }

  close(): void {
    this.#stop.abort();
    this.#unwatch();
  }

  #unwatch(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
  }

  async #list(): Promise<void> {
    const { signal } = this.#stop;
    try {
      const snapshot = await this.#readSnapshot(signal);
      if (signal.aborted) return;
      this.#events.onSnapshot(snapshot, snapshot.epoch);
      if (!signal.aborted)
        this.#watchFrom(
          this.#targets.map(() => snapshot.revision),
          snapshot.epoch,
        );
    } catch (error) {
      if (signal.aborted || this.#connection.closing.aborted) return;
      this.#events.onRefused(toEphemeralError(error));
    }
  }

  /** A listing of many pages may be overtaken by a compaction; then it begins anew. */
  async #readSnapshot(signal: AbortSignal) {
    const { keysOnly, beside = [] } = this.#options;
    const targets = [...this.#targets, ...beside.map((key) => ({ key }))];
    for (;;) {
      try {
        return await readSnapshot(this.#connection, targets, { keysOnly, signal });
      } catch (error) {
        if (!(error instanceof CompactedError)) throw error;
        log('compacted while listing: %s', messageOf(error));
      }
    }
  }

  #watchFrom(revisions: readonly number[], epoch: number): void {
    this.#watches = this.#targets.map((target, index) =>
      this.#hub.watch(target, (revisions[index] ?? 0) + 1, epoch, {
        onEvents: (events) => this.#events.onEvents(index, events),
        onGap: (gap) => void this.#relist(gap),
        onRefused: (error) => {
          this.close();
          this.#events.onRefused(error);
        },
      }),
    );
  }

  async #relist(gap: WatchGap): Promise<void> {
    if (this.#watches.length === 0) return;
    log('%o: %s, listing anew', this.#targets, gap);
    this.#unwatch();
    this.#events.onRelist?.(gap);
    const { clock } = this.#connection;
    try {
      await sleep(clock, clock.random() * RELIST_JITTER_MS, this.#stop.signal);
    } catch {
      return;
    }
    await this.#list();
  }
}
