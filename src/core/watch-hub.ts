import { sleep } from './clock.ts';
import type { Connection, Link } from './connection.ts';
import {
  CompactedError,
  ConnectionError,
  type EphemeralError,
  PermissionDeniedError,
  toEphemeralError,
} from './errors.ts';
import { debugLog, messageOf } from './log.ts';
import type { Target, WatchEvent, WatchStream } from './store.ts';

const log = debugLog('watch');

/** Why a watch cannot go on from where it was: its owner must read anew. */
export type WatchGap = 'compacted' | 'restored';

export interface WatchListener {
  /** Events of whole revisions, in order, each exactly once. */
  onEvents(events: readonly WatchEvent[]): void;
  /** The watch has ended; what came in between is not known. */
  onGap(gap: WatchGap): void;
  /** The watch has ended and the store will not have it again. */
  onRefused(error: EphemeralError): void;
}

export interface Watch {
  close(): void;
}

interface Entry {
  readonly id: number;
  readonly target: Target;
  readonly listener: WatchListener;
  readonly epoch: number;
  /** The next revision wanted. It follows events: the header of an answer is ahead of them while a watch catches up. */
  next: number;
}

/** A token that ends mid-stream is renewed by a new link, no more often than this (milliseconds). */
const RENEW_PAUSE_MS = 1_000;

/** All watches of a process on one stream, resumed after a reconnect each from its own last event. */
export class WatchHub {
  readonly #connection: Connection;
  readonly #entries = new Map<number, Entry>();
  #stream: WatchStream | undefined;
  #lastId = 0;
  readonly #off: readonly (() => void)[];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#off = [connection.linkUp.add((link) => this.#resume(link)), connection.linkDown.add(() => this.#drop())];
  }

  /** Watches a target from a revision on, which was read in the present epoch. */
  watch(target: Target, startRevision: number, epoch: number, listener: WatchListener): Watch {
    this.#lastId += 1;
    const entry: Entry = { id: this.#lastId, target, listener, epoch, next: startRevision };
    this.#entries.set(entry.id, entry);
    const link = this.#connection.link;
    if (link && link.epoch !== epoch) {
      queueMicrotask(() => this.#end(entry.id)?.listener.onGap('restored'));
    } else if (link) {
      this.#openStream(link).create(entry.id, { target, startRevision });
    }
    return { close: () => this.#close(entry.id) };
  }

  /** Calls once, when something happens to the target or can no longer be seen to. Returns the function that ends the wait. */
  once(target: Target, startRevision: number, epoch: number, onChange: () => void): () => void {
    const done = () => {
      watch.close();
      onChange();
    };
    const watch = this.watch(target, startRevision, epoch, { onEvents: done, onGap: done, onRefused: done });
    return () => watch.close();
  }

  /** How many watches there are. */
  get size(): number {
    return this.#entries.size;
  }

  close(): void {
    for (const off of this.#off) off();
    this.#drop();
    this.#entries.clear();
  }

  #close(id: number): void {
    if (!this.#entries.delete(id)) return;
    if (this.#entries.size > 0) this.#stream?.cancel(id);
    else this.#drop();
  }

  #end(id: number): Entry | undefined {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    return entry;
  }

  #drop(): void {
    this.#stream?.close();
    this.#stream = undefined;
  }

  #resume(link: Link): void {
    this.#drop();
    for (const entry of [...this.#entries.values()]) {
      if (!this.#entries.has(entry.id)) continue;
      if (entry.epoch !== link.epoch) this.#end(entry.id)?.listener.onGap('restored');
      else this.#openStream(link).create(entry.id, { target: entry.target, startRevision: entry.next });
    }
  }

  #openStream(link: Link): WatchStream {
    if (this.#stream) return this.#stream;
    const { store } = this.#connection;
    this.#stream = store.openWatch({
      onCreated: () => this.#connection.heard(0),
      onEvents: (id, events) => {
        const last = events.at(-1);
        const entry = this.#entries.get(id);
        if (!entry || !last) return;
        entry.next = last.kv.modRevision + 1;
        this.#connection.heard(last.kv.modRevision);
        entry.listener.onEvents(events);
      },
      onCanceled: (id, error) => void this.#canceled(link, id, error),
      onEnd: (error) => {
        this.#stream = undefined;
        this.#connection.suspect(link.generation, toEphemeralError(error));
      },
    });
    return this.#stream;
  }

  async #canceled(link: Link, id: number, error: Error): Promise<void> {
    const entry = this.#entries.get(id);
    if (!entry) return;
    log('watch of %o from %d canceled: %s', entry.target, entry.next, error.message);
    if (error instanceof CompactedError) {
      this.#end(id)?.listener.onGap('compacted');
      return;
    }
    if (error instanceof ConnectionError) {
      this.#connection.suspect(link.generation, error);
      return;
    }
    if (error instanceof PermissionDeniedError && (await this.#mayRead(entry.target))) {
      // The user may, the stream may not: its token ended. Only a new stream is given a new one.
      await sleep(this.#connection.clock, RENEW_PAUSE_MS, this.#connection.closing).catch(() => {});
      this.#connection.suspect(
        link.generation,
        new ConnectionError('the token of the watch stream ended', { cause: error }),
      );
      return;
    }
    this.#end(id)?.listener.onRefused(toEphemeralError(error));
  }

  async #mayRead(target: Target): Promise<boolean> {
    try {
      await this.#connection.range({ type: 'range', target, keysOnly: true, limit: 1 });
      return true;
    } catch (error) {
      log('reading %o: %s', target, messageOf(error));
      return !(error instanceof PermissionDeniedError) && !this.#connection.closing.aborted;
    }
  }
}
