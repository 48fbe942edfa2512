import { sleep } from '../core/clock.ts';
import { ClosedError, concerning, type EphemeralError } from '../core/errors.ts';
import type { Listing } from './api.ts';
import { sameChildren } from './children.ts';
import { makeListing, momentOf } from './listing.ts';
import { assertDirectory, readDirectory } from './read-directory.ts';
import type { Existence, Reader, ReaderContext, ReaderEvents, View } from './reader.ts';

/** Events of what was missed come within a tenth of a second, a restored store or a compacted history take a reading more. */
const LOOK_MS = 100;
const LOOKS = 20;

export interface Subscriber {
  readonly missing: 'error' | 'wait';
  next(listing: Listing): void;
  error(error: EphemeralError): void;
  complete(): void;
}

/**
 * One directory followed once for all its subscribers in a process. Turns what its reader tells into listings, and says `stale` when
 * the store has not been heard for too long.
 */
export class LiveDirectory {
  readonly #context: ReaderContext;
  readonly #reader: Reader;
  readonly #subscribers = new Set<Subscriber>();
  /** Those who came to an empty directory and for whom it is not settled yet whether it is there. */
  readonly #inDoubt = new Set<Subscriber>();
  readonly #onIdle: () => void;
  readonly #off: readonly (() => void)[];
  #current: Listing | undefined;
  #existence: Existence = { isAdded: false, isKey: false };
  #isClosed = false;

  /** `onIdle`: the last subscriber has gone. */
  constructor(context: ReaderContext, makeReader: (events: ReaderEvents) => Reader, onIdle: () => void) {
    this.#context = context;
    this.#onIdle = onIdle;
    const { connection } = context;
    this.#off = [connection.stale.add(() => this.#emit('stale')), connection.linkUp.add(() => void this.#comeBack())];
    this.#reader = makeReader({
      onRead: (existence) => this.#read(existence),
      onChanged: () => this.#emit(),
      onRefused: (error) => this.#fail(error),
    });
  }

  /**
   * The store answers again. What happened meanwhile is on its way: `live` is said with the first of it, or when the store says that
   * there is nothing.
   */
  async #comeBack(): Promise<void> {
    const { connection } = this.#context;
    const { link } = connection;
    const isAwaited = () => !this.#isClosed && this.#current?.status === 'stale' && connection.link === link;
    for (let looks = 0; isAwaited() && looks < LOOKS; looks += 1) {
      if (looks > 0) await sleep(connection.clock, LOOK_MS, connection.closing).catch(() => {});
      if (await this.#reader.isCurrent().catch(() => false)) break;
    }
    if (isAwaited()) this.#emit('live');
  }

  /** Returns the function that ends the subscription. */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    if (this.#current) void this.#greet(subscriber);
    return () => {
      this.#inDoubt.delete(subscriber);
      if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0 && !this.#isClosed) this.#onIdle();
    };
  }

  /** Completes what is left of subscribers and frees everything. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const off of this.#off) off();
    for (const subscriber of [...this.#subscribers]) subscriber.complete();
    this.#subscribers.clear();
    this.#inDoubt.clear();
    await this.#reader.close();
  }

  /**
   * The first listing of one who came when the directory was followed already. Nobody is told of an empty one before it is known
   * whether it is an error for them: after a first listing there is none for absence.
   */
  async #greet(subscriber: Subscriber): Promise<void> {
    if (subscriber.missing === 'error' && this.#current && momentOf(this.#current)?.size === 0) {
      this.#inDoubt.add(subscriber);
      const { connection, directory, path, withValues } = this.#context;
      try {
        assertDirectory(path, await readDirectory(connection, directory, undefined, withValues, {}));
      } catch (error) {
        if (error instanceof ClosedError || !this.#inDoubt.delete(subscriber)) return;
        if (this.#subscribers.delete(subscriber)) subscriber.error(error as EphemeralError);
        if (this.#subscribers.size === 0 && !this.#isClosed) this.#onIdle();
        return;
      }
      if (!this.#inDoubt.delete(subscriber)) return;
    }
    if (this.#current && this.#subscribers.has(subscriber)) subscriber.next(this.#current);
  }

  #read(existence: Existence): void {
    const isFirst = this.#current === undefined;
    this.#existence = existence;
    const { view } = this.#reader;
    if (!view) return;
    if (isFirst && view.children.size === 0) this.#dismissWhoNeedsIt();
    if (this.#isClosed || this.#subscribers.size === 0) return;
    const before = this.#current;
    const children = before && momentOf(before);
    const isSame =
      before?.status === 'live' &&
      view.epoch === before.epoch &&
      children !== undefined &&
      sameChildren(children, view.children);
    if (!isSame) this.#emit();
  }

  /** Nothing is there: an error for those who did not say that they would wait. */
  #dismissWhoNeedsIt(): void {
    const { path } = this.#context;
    for (const subscriber of [...this.#subscribers]) {
      if (subscriber.missing === 'wait') continue;
      try {
        assertDirectory(path, { isEmpty: true, ...this.#existence });
      } catch (error) {
        this.#subscribers.delete(subscriber);
        subscriber.error(error as EphemeralError);
      }
    }
    if (this.#subscribers.size === 0 && !this.#isClosed) this.#onIdle();
  }

  #emit(status: Listing['status'] = this.#context.connection.isStale ? 'stale' : 'live'): void {
    const view: View | undefined = this.#reader.view;
    if (!view || this.#isClosed) return;
    const { path, withValues, telemetry } = this.#context;
    const at = view.children.now();
    const listing = makeListing(
      {
        path: path === '' ? '/' : path,
        at,
        revision: view.revisions.keys,
        epoch: view.epoch,
        status,
      },
      withValues,
    );
    this.#current = listing;
    telemetry.count('list.listings');
    for (const subscriber of [...this.#subscribers]) {
      if (!this.#subscribers.has(subscriber)) continue;
      if (this.#inDoubt.has(subscriber) && at.size === 0) continue;
      this.#inDoubt.delete(subscriber);
      subscriber.next(listing);
    }
  }

  #fail(refusal: EphemeralError): void {
    const error = concerning(this.#context.path || '/', refusal);
    const subscribers = [...this.#subscribers];
    this.#subscribers.clear();
    for (const subscriber of subscribers) subscriber.error(error);
    if (!this.#isClosed) this.#onIdle();
  }
}
