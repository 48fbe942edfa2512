import pRetry from 'p-retry';
import { abortable } from './abortable.ts';
import { backoffMs } from './backoff.ts';
import { type Clock, sleep, type Timer } from './clock.ts';
import { ClosedError, ConnectionError, EphemeralError, UnauthenticatedError } from './errors.ts';
import { Listeners } from './listeners.ts';
import { debugLog, messageOf } from './log.ts';
import { onAbort } from './on-abort.ts';
import type { CallOptions, Header, RangeOp, RangeResult, Store, Txn, TxnResult } from './store.ts';

const log = debugLog('connection');

/**
 * While a link stands its other end was heard within so long (ms), also where nothing is asked and no lease is renewed: the transport
 * pings each 5 s and waits 3 s for the answer.
 */
const LONGEST_SILENCE_MS = 8_000;

/** An answer and the epoch it belongs to: revisions of different epochs cannot be compared. */
export type InEpoch<T> = T & { readonly epoch: number };

/** One stretch of unbroken contact with the store. */
export interface Link {
  /** Rises by one with each link. */
  readonly generation: number;
  /** Rises when the store turned out to have been restored, wiped or exchanged. */
  readonly epoch: number;
  /** The store's revision when the link was proven. */
  readonly revision: number;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  /** The session's time to live, by which all patience here is measured. */
  readonly ttlMs: number;
  /** How long without contact before lists are stale. */
  readonly staleAfterMs: number;
}

export interface RetryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Give up after so long without success, with the last error. Default: never. */
  readonly budgetMs?: number | undefined;
  /** When the signal comes, the attempt that is under way is waited for; no other follows. */
  readonly untilAnswered?: boolean | undefined;
}

/** A link was given up on purpose, before its endpoint goes: nothing is amiss. */
export class MoveError extends ConnectionError {}

/** Waiting starts here: a refused connection costs next to nothing, and most restarts take under a second. */
const FIRST_BACKOFF_MS = 50;
/** A registration must be back within ttl + 1 s of the store's return, so no wait is longer. */
const MAX_BACKOFF_MS = 1_000;
/** An expired token or a wrong password is tried no faster: each try costs the server a bcrypt comparison. */
const AUTH_BACKOFF_MS = 1_000;
const MAX_TIMEOUT_MS = 5_000;
const LEAST_ATTEMPT_MS = 100;

/**
 * Keeps one link to the store. Whoever sees it fail says so with `suspect`; it is then replaced, and every stream made anew by
 * its owner on `linkUp`. The first thing said on a new link is a linearizable read: a revision, term or cluster that fell behind
 * what was seen before means that the store was restored, and begins a new epoch.
 */
export class Connection {
  readonly linkUp = new Listeners<[link: Link]>();
  readonly linkDown = new Listeners<[error: EphemeralError]>();
  /** No contact for `staleAfterMs`. Followed by `linkUp`, sometime. */
  readonly stale = new Listeners<[]>();
  readonly store: Store;
  readonly clock: Clock;
  /** For one unary call. A leader's election (about 2 s) may pass within it. */
  readonly callOptions: CallOptions;
  readonly #ttlMs: number;
  readonly #staleAfterMs: number;
  readonly #closing = new AbortController();
  #link: Link | undefined;
  #upSinceMs = 0;
  #lastHeardMs: number;
  #failures = 0;
  #generation = 0;
  #epoch = 0;
  /** What the last link's first answer said. */
  #seen: Header | undefined;
  /** The highest revision heard of since. */
  #seenRevision = 0;
  #lastError: EphemeralError | undefined;
  #staleTimer: Timer | undefined;
  #isStale = false;

  constructor(store: Store, options: ConnectionOptions) {
    this.store = store;
    this.clock = options.clock;
    this.#ttlMs = options.ttlMs;
    this.#staleAfterMs = options.staleAfterMs;
    this.#lastHeardMs = options.clock.now();
    this.callOptions = { timeoutMs: Math.min(MAX_TIMEOUT_MS, Math.max(2_000, options.ttlMs)) };
  }

  get link(): Link | undefined {
    return this.#link;
  }

  get state(): 'connected' | 'disconnected' | 'closed' {
    if (this.#closing.signal.aborted) return 'closed';
    return this.#link ? 'connected' : 'disconnected';
  }

  get isStale(): boolean {
    return this.#isStale;
  }

  /** Aborted when the connection is closed; its reason is a ClosedError. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Makes the first link.
   * @throws the last error, when there is none within `timeoutMs`, or the first that trying again cannot mend
   */
  async open(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const startMs = this.clock.now();
    const attempt = async () => {
      const leftMs = startMs + timeoutMs - this.clock.now();
      // Too little for an answer: the failure would hide the reason of the one before.
      if (this.#lastError && leftMs < LEAST_ATTEMPT_MS) throw this.#lastError;
      await this.#connectOnce(Math.max(1, Math.min(leftMs, this.#attemptTimeoutMs())));
    };
    try {
      await pRetry(() => abortable(attempt(), signal), {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0,
        shouldRetry: ({ error }) => mayPass(error) && this.clock.now() - startMs < timeoutMs,
        onFailedAttempt: ({ error }) =>
          mayPass(error) ? this.#pause(signal, startMs + timeoutMs - this.clock.now()) : undefined,
      });
    } catch (error) {
      // A signal's reason need not be an Error, which p-retry would not pass on as it is.
      throw signal?.aborted ? signal.reason : error;
    }
  }

  /** Says that the link of this generation failed. Later calls for the same one do nothing. */
  suspect(generation: number, error: EphemeralError): void {
    if (this.#link?.generation !== generation || this.#closing.signal.aborted) return;
    log('link %d to %s failed: %s', generation, this.store.endpoint, error.message);
    const stableMs = Math.max(1_000, this.#ttlMs / 2);
    this.#replace(error, this.clock.now() - this.#upSinceMs >= stableMs ? 0 : this.#failures + 1);
  }

  /** Gives up a link that works, because its endpoint is about to go: another one at once costs less than to wait for the end. */
  move(reason: string): void {
    if (!this.#link || this.#closing.signal.aborted) return;
    log('link %d to %s is given up: %s', this.#link.generation, this.store.endpoint, reason);
    this.#replace(new MoveError(reason), 0);
  }

  #replace(error: EphemeralError, failures: number): void {
    this.#failures = failures;
    this.#link = undefined;
    this.#lastError = error;
    const silentMs = Math.min(this.clock.now() - this.#lastHeardMs, LONGEST_SILENCE_MS);
    this.#staleTimer = this.clock.setTimeout(
      () => {
        this.#isStale = true;
        this.stale.call();
      },
      Math.max(0, this.#staleAfterMs - silentMs),
    );
    this.linkDown.call(error);
    void this.#reconnect();
  }

  /** Notes that the store answered, and up to which revision. */
  heard(revision: number): void {
    this.#lastHeardMs = this.clock.now();
    if (revision > this.#seenRevision) this.#seenRevision = revision;
  }

  /** Resolves with a link as soon as there is one. */
  async whenUp(signal?: AbortSignal): Promise<Link> {
    this.#closing.signal.throwIfAborted();
    signal?.throwIfAborted();
    if (this.#link) return this.#link;
    return new Promise<Link>((resolve, reject) => {
      const done = () => {
        for (const off of offs) off();
      };
      const onUp = (link: Link) => {
        done();
        resolve(link);
      };
      const rejectWith = (aborted: AbortSignal) => () => {
        done();
        reject(aborted.reason);
      };
      const signals = signal ? [signal, this.#closing.signal] : [this.#closing.signal];
      const offs = [this.linkUp.add(onUp), ...signals.map((one) => onAbort(one, rejectWith(one)))];
    });
  }

  /** One call on the present link. A ConnectionError is also taken as the link's failure. */
  async attempt<T>(call: (store: Store, link: Link) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const link = await this.whenUp(signal);
    try {
      return await call(this.store, link);
    } catch (error) {
      if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
      if (error instanceof ConnectionError) this.suspect(link.generation, error);
      throw error;
    }
  }

  /** For calls that may safely be made twice. Bounded by `budgetMs`, the signal, or the end of the connection. */
  async retrying<T>(call: (store: Store, link: Link) => Promise<T>, options: RetryOptions = {}): Promise<T> {
    const { signal, budgetMs = Number.POSITIVE_INFINITY, untilAnswered = false } = options;
    const startMs = this.clock.now();
    // Not AbortSignal.any: on a long-lived signal of the caller's it would leave something behind with each call.
    const stop = new AbortController();
    const offs: (() => void)[] = [];
    // The closing one too: a wait between two attempts would keep a process alive that has closed its client.
    for (const one of [signal, this.#closing.signal]) {
      if (one?.aborted) stop.abort(one.reason);
      else if (one) offs.push(onAbort(one, () => stop.abort(one.reason)));
    }
    const timer = Number.isFinite(budgetMs)
      ? this.clock.setTimeout(() => stop.abort(this.#unreachable(budgetMs)), budgetMs)
      : undefined;
    let failures = 0;
    try {
      const attempt = () => this.attempt(call, stop.signal);
      return await pRetry(untilAnswered ? attempt : () => abortable(attempt(), stop.signal), {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0,
        signal: stop.signal,
        shouldRetry: ({ error }) => mayPass(error) && this.clock.now() - startMs < budgetMs,
        onFailedAttempt: async ({ error }) => {
          if (!mayPass(error)) return;
          failures += 1;
          const waitMs = backoffMs({ firstMs: 20, maxMs: MAX_BACKOFF_MS }, failures, this.clock.random());
          await sleep(this.clock, waitMs, stop.signal);
        },
      });
    } catch (error) {
      throw stop.signal.aborted ? stop.signal.reason : error;
    } finally {
      timer?.clear();
      for (const off of offs) off();
    }
  }

  async txn(txn: Txn, options?: RetryOptions): Promise<InEpoch<TxnResult>> {
    return this.#noting((store) => store.txn(txn, this.callOptions), options);
  }

  async range(op: RangeOp, options?: RetryOptions): Promise<InEpoch<RangeResult & { readonly header: Header }>> {
    return this.#noting((store) => store.range(op, this.callOptions), options);
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#link = undefined;
    this.#staleTimer?.clear();
    this.#closing.abort(new ClosedError('the client was closed: make a new one'));
    this.store.close();
  }

  async #noting<T extends { readonly header: Header }>(
    call: (store: Store) => Promise<T>,
    options: RetryOptions | undefined,
  ): Promise<InEpoch<T>> {
    let epoch = 0;
    const answer = await this.retrying((store, link) => {
      epoch = link.epoch;
      return call(store);
    }, options);
    this.heard(answer.header.revision);
    return { ...answer, epoch };
  }

  #unreachable(budgetMs: number): ConnectionError {
    const cause = this.#lastError;
    return new ConnectionError(
      `no answer from ${this.store.endpoint} within ${budgetMs / 1_000} s` +
        `${cause ? ` (${cause.message})` : ''}: check that etcd is up and reachable`,
      { cause },
    );
  }

  /** Never ends before it has a link: a registry that gave up would look alive and be absent. */
  async #reconnect(): Promise<void> {
    try {
      if (this.#failures > 0) await this.#pause(this.#closing.signal);
      while (!this.#closing.signal.aborted) {
        try {
          return await this.#connectOnce(this.#attemptTimeoutMs());
        } catch {
          await this.#pause(this.#closing.signal);
        }
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) throw error;
    }
  }

  async #connectOnce(timeoutMs: number): Promise<void> {
    try {
      const header = await this.store.connect({ timeoutMs });
      if (!this.#closing.signal.aborted) this.#up(header);
    } catch (error) {
      this.#failures += 1;
      if (error instanceof EphemeralError) this.#lastError = error;
      log('no link to %s: %s', this.store.endpoint, messageOf(error));
      throw error;
    }
  }

  #up(header: Header): void {
    const seen = this.#seen;
    const restored =
      seen !== undefined &&
      (header.clusterId !== seen.clusterId || header.revision < this.#seenRevision || header.term < seen.term);
    if (restored) this.#epoch += 1;
    this.#seen = header;
    this.#seenRevision = header.revision;
    this.#generation += 1;
    this.#upSinceMs = this.clock.now();
    this.#lastHeardMs = this.#upSinceMs;
    this.#staleTimer?.clear();
    this.#isStale = false;
    this.#link = { generation: this.#generation, epoch: this.#epoch, revision: header.revision };
    log(
      'link %d to %s at revision %d%s',
      this.#generation,
      this.store.endpoint,
      header.revision,
      restored ? ': the store went back in time, a new epoch begins' : '',
    );
    this.linkUp.call(this.#link);
  }

  /**
   * While a lease is at stake an attempt must leave time for another one; a slow network gets longer with each failure, yet no
   * longer than lets a registration be back within ttl + 1 s of the store's return: an attempt that began before may be lost.
   */
  #attemptTimeoutMs(): number {
    const { timeoutMs } = this.callOptions;
    return Math.min(timeoutMs, Math.max(500, this.#ttlMs / 4) * 1.5 ** Math.min(this.#failures, 10));
  }

  async #pause(signal: AbortSignal | undefined, atMostMs = Number.POSITIVE_INFINITY): Promise<void> {
    const leaseAtStake = this.clock.now() - this.#lastHeardMs < this.#ttlMs;
    const maxMs = leaseAtStake ? Math.min(MAX_BACKOFF_MS, Math.max(200, this.#ttlMs / 10)) : MAX_BACKOFF_MS;
    const waitMs = backoffMs({ firstMs: FIRST_BACKOFF_MS, maxMs }, Math.max(1, this.#failures), this.clock.random());
    const floorMs = this.#lastError instanceof UnauthenticatedError ? AUTH_BACKOFF_MS : 0;
    await sleep(this.clock, Math.max(0, Math.min(atMostMs, Math.max(waitMs, floorMs))), signal);
  }
}

/** Only trouble with the link is tried again here; what the store itself refuses, its caller must judge. */
function mayPass(error: unknown): boolean {
  return error instanceof ConnectionError && error.retryable;
}
