import { type BackoffPolicy, backoffMs } from './backoff.ts';
import { sleep, type Timer } from './clock.ts';
import type { Connection, InEpoch, Link } from './connection.ts';
import { EphemeralError, LeaseNotFoundError, RevokedError } from './errors.ts';
import { Fence, FenceGoneError } from './fence.ts';
import { KEEPALIVE_FRACTION, KeepAlive, leaseGone, renewOnce } from './keep-alive.ts';
import { Listeners } from './listeners.ts';
import { debugLog, messageOf } from './log.ts';
import type { Lease, Txn, TxnResult } from './store.ts';

const log = debugLog('session');

/**
 * Own keys are verified this often (part of the ttl). When an outage of half a ttl begins, the last answer is a quarter old at most,
 * and a quarter is left to reconnect in before it is too old.
 */
const VERIFY_FRACTION = 0.25;
/** The ceiling keeps a registration's return within a second of the store's. */
const GRANT_BACKOFF: BackoffPolicy = { firstMs: 50, maxMs: 1_000 };
/** A key on a lease older than the last so many has long expired. */
const FORMER_LEASES = 16;
/**
 * A user who may not hold a session is refused at each attempt. While nothing hangs on it (a list whose user may only read does very
 * well without), it is asked for this seldom (ms): an operator may grant the permission.
 */
const REFUSED_PAUSE_MS = 30_000;

/** The session ended while a write was under way, or before it. Whoever wrote waits for `alive` and looks again. */
export class SessionLostError extends EphemeralError {
  readonly code = 'SESSION_LOST';
  override readonly retryable = true;
}

export interface SessionOptions {
  /** Seconds, as asked for. */
  readonly ttl: number;
  /** Where the fence lies: this and the lease's id. */
  readonly fencePrefix: string;
  readonly onBeat: (ok: boolean) => void;
}

/**
 * One lease for the process, kept alive on one stream.
 *
 * It is made when it is first needed. When it is lost, by our own clock or by the store's word, `lost` is called; then the same
 * lease is resumed if the store still has it (a restarted server re-arms every lease), else a new one is made.
 */
export class Session {
  /** The lease is ours: from now until `lost`. Told also when it is the same as before. */
  readonly alive = new Listeners<[leaseId: string]>();
  readonly lost = new Listeners<[error: EphemeralError]>();
  /** Which keys hang on the lease, about once a ttl and on every new link. */
  readonly verified = new Listeners<[keys: ReadonlySet<string>, askedAtMs: number]>();
  /** For a whole ttl the keys could not be verified, though the lease is still ours. */
  readonly unverified = new Listeners<[]>();
  /** A lease could not be had for a reason that waiting alone may not mend. */
  readonly refused = new Listeners<[error: EphemeralError]>();
  readonly connection: Connection;
  readonly #options: SessionOptions;
  #formerLeases: string[] = [];
  #lease: Lease | undefined;
  /** Of the time before a restore, not revoked yet. */
  #renouncedLease: string | undefined;
  #fence: Fence | undefined;
  #keepAlive: KeepAlive | undefined;
  #isStarted = false;
  #isClosed = false;
  #nextVerifyMs = 0;
  #unverifiedTimer: Timer | undefined;
  #wantsVerification: () => boolean = () => false;
  #epoch = 0;
  #offLink: (() => void) | undefined;
  /** Until the next attempt to have a lease. */
  #pause: AbortController | undefined;

  constructor(connection: Connection, options: SessionOptions) {
    this.connection = connection;
    this.#options = options;
  }

  /** The lease in our hands, or undefined while there is none. */
  get leaseId(): string | undefined {
    return this.#keepAlive ? this.#lease?.id : undefined;
  }

  /** Milliseconds of the lease as granted; as asked for before that. */
  get ttlMs(): number {
    return (this.#lease?.ttl ?? this.#options.ttl) * 1_000;
  }

  /** Until when (by the clock) the lease is ours if nothing more is heard; undefined while there is none. */
  get deadlineMs(): number | undefined {
    return this.#keepAlive?.deadlineMs;
  }

  /** Whether a key on this lease is one of ours: the present lease, or one that we had before. */
  isOurs(leaseId: string): boolean {
    return leaseId === this.#lease?.id || this.#formerLeases.includes(leaseId);
  }

  /** Makes the lease, now that it is needed. `wantsVerification`: whether anything of ours hangs on it. */
  start(wantsVerification: () => boolean): void {
    // Somebody needs it now: it is tried at once.
    this.#pause?.abort();
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    this.#wantsVerification = wantsVerification;
    this.#epoch = this.connection.link?.epoch ?? 0;
    this.#offLink = this.connection.linkUp.add((link) => this.#onLink(link));
    void this.#acquire();
  }

  /**
   * A write of ours, done only while the lease and its fence stand.
   * @throws SessionLostError, UnsettledWriteError, or what the store says (then nothing was written)
   */
  async write(txn: Txn): Promise<InEpoch<TxnResult>> {
    const leaseId = this.leaseId;
    const fence = this.#fence;
    if (leaseId === undefined || !fence) throw new SessionLostError('there is no lease now');
    try {
      return await fence.write(txn, () => {
        if (this.leaseId !== leaseId) throw new SessionLostError('the lease was lost before the write');
      });
    } catch (error) {
      if (error instanceof LeaseNotFoundError || error instanceof FenceGoneError) {
        if (this.leaseId === leaseId) this.#lose(leaseGone());
        throw new SessionLostError(error.message, { cause: error });
      }
      throw error;
    }
  }

  /**
   * Resolves when no write made under this value of the fence can take effect any more: never before, as whoever waits goes by
   * that. A store that cannot take the fence now (it is full, say) is asked again.
   */
  async settle(used: number): Promise<void> {
    const fence = this.#fence;
    const { clock, closing } = this.connection;
    for (let failures = 1; fence && fence === this.#fence; failures += 1) {
      try {
        await fence.settle(used);
        return;
      } catch (error) {
        if (closing.aborted) throw error;
        if (error instanceof LeaseNotFoundError) {
          if (this.#fence === fence && this.#keepAlive) this.#lose(leaseGone());
          return;
        }
        log('the fence could not be raised: %s', messageOf(error));
        await sleep(clock, backoffMs(GRANT_BACKOFF, failures, clock.random()), closing);
      }
    }
  }

  /** Whether the store takes writes: it is given one. */
  async isStoreWritable(): Promise<boolean> {
    try {
      await this.#fence?.raise();
      return this.#fence !== undefined;
    } catch (error) {
      log('the store takes no writes: %s', messageOf(error));
      return false;
    }
  }

  /** Revokes the lease: every key on it goes at once. False when that was not done in `timeoutMs`: the keys go with the ttl. */
  async close(timeoutMs: number): Promise<boolean> {
    if (this.#isClosed) return true;
    this.#isClosed = true;
    this.#keepAlive?.stop();
    this.#keepAlive = undefined;
    this.#unverifiedTimer?.clear();
    this.#offLink?.();
    this.#pause?.abort();
    if (!this.#lease) return true;
    const { id } = this.#lease;
    try {
      await this.connection.retrying((store) => store.leaseRevoke(id, { timeoutMs }), { budgetMs: timeoutMs });
      return true;
    } catch (error) {
      log('lease %s could not be revoked and will expire: %s', id, messageOf(error));
      return false;
    }
  }

  /** Retries without end: the process lives, so it is to be listed. */
  async #acquire(): Promise<void> {
    const { clock, closing } = this.connection;
    for (let failures = 1; !this.#isClosed && !closing.aborted; failures += 1) {
      try {
        const link = await this.connection.whenUp(closing);
        await this.#revokeRenounced();
        const renewedAtMs = (await this.#resume(link)) ?? (await this.#grant());
        if (this.#begin(renewedAtMs)) return;
      } catch (error) {
        if (this.#isClosed || closing.aborted) return;
        log('no lease: %s', messageOf(error));
        const mendable = !(error instanceof EphemeralError) || error.retryable || error instanceof LeaseNotFoundError;
        if (!mendable) this.refused.call(error as EphemeralError);
        if (mendable) await sleep(clock, backoffMs(GRANT_BACKOFF, failures, clock.random()), closing).catch(() => {});
        else await this.#awaitPermission();
      }
    }
  }

  async #awaitPermission(): Promise<void> {
    this.#pause = new AbortController();
    const waitMs = this.#wantsVerification() ? GRANT_BACKOFF.maxMs : REFUSED_PAUSE_MS;
    await sleep(this.connection.clock, waitMs, this.#pause.signal).catch(() => {});
    this.#pause = undefined;
  }

  /** When the lease of before was renewed, or undefined when there is none (any more). */
  async #resume(link: Link): Promise<number | undefined> {
    if (!this.#lease) return undefined;
    const renewedAtMs = await renewOnce(this.connection, this.#lease, link);
    if (renewedAtMs === undefined) this.#forgetLease();
    else await this.#fence?.raise();
    return renewedAtMs;
  }

  async #grant(): Promise<number> {
    const { clock, callOptions } = this.connection;
    const sentMs = clock.now();
    const lease = await this.connection.attempt((store) => store.leaseGrant(this.#options.ttl, callOptions));
    this.#lease = lease;
    this.#fence = new Fence(this.connection, this.#options.fencePrefix + lease.id, lease.id);
    await this.#fence.raise();
    return sentMs;
  }

  /** False when so much time has passed that the lease must be renewed first. */
  #begin(renewedAtMs: number): boolean {
    if (this.#isClosed || !this.#lease) return this.#isClosed;
    const { id, ttl } = this.#lease;
    if (this.connection.clock.now() >= renewedAtMs + ttl * 1_000) return false;
    log('lease %s is ours for %d s', id, ttl);
    this.#keepAlive = new KeepAlive(this.connection, this.#lease, renewedAtMs, {
      onLost: (error) => this.#lose(error),
      onPeriod: () => {
        if (this.connection.clock.now() >= this.#nextVerifyMs) void this.#verify();
      },
      onBeat: this.#options.onBeat,
    });
    this.#nextVerifyMs = 0;
    this.#armUnverified(renewedAtMs);
    this.alive.call(id);
    void this.#verify();
    return true;
  }

  #lose(error: EphemeralError): void {
    if (!this.#keepAlive) return;
    log('lease %s is lost: %s', this.#lease?.id, error.message);
    this.#keepAlive.stop();
    this.#keepAlive = undefined;
    this.#unverifiedTimer?.clear();
    if (error instanceof RevokedError) this.#forgetLease();
    this.lost.call(error);
    void this.#acquire();
  }

  #forgetLease(): void {
    if (this.#lease) this.#formerLeases = [this.#lease.id, ...this.#formerLeases].slice(0, FORMER_LEASES);
    this.#lease = undefined;
    this.#fence = undefined;
  }

  #onLink(link: Link): void {
    if (link.epoch !== this.#epoch) {
      this.#epoch = link.epoch;
      this.#renounceLease();
    }
    if (this.#keepAlive) void this.#verify();
  }

  /**
   * The store was restored. If it has our lease, then with the keys that hung on it once, also those that we have removed since: all
   * of it goes, and what is wanted now is made anew.
   */
  #renounceLease(): void {
    if (!this.#lease) return;
    this.#renouncedLease = this.#lease.id;
    if (this.#keepAlive) this.#lose(new RevokedError('the store was restored to another state'));
    else this.#forgetLease();
  }

  async #revokeRenounced(): Promise<void> {
    const id = this.#renouncedLease;
    if (id === undefined) return;
    const { callOptions } = this.connection;
    await this.connection.attempt((store) => store.leaseRevoke(id, callOptions));
    if (this.#renouncedLease === id) this.#renouncedLease = undefined;
  }

  #armUnverified(sinceMs: number): void {
    const { clock } = this.connection;
    this.#unverifiedTimer?.clear();
    const waitMs = Math.max(this.ttlMs * KEEPALIVE_FRACTION, sinceMs + this.ttlMs - clock.now());
    this.#unverifiedTimer = clock.setTimeout(() => {
      if (!this.#keepAlive) return;
      this.#armUnverified(sinceMs);
      if (this.#wantsVerification()) this.unverified.call();
    }, waitMs);
  }

  async #verify(): Promise<void> {
    const leaseId = this.leaseId;
    if (leaseId === undefined || !this.#wantsVerification()) return;
    const { clock, callOptions } = this.connection;
    const askedAtMs = clock.now();
    // The next period's end at or after this is when it is done again.
    this.#nextVerifyMs = askedAtMs + this.ttlMs * (VERIFY_FRACTION - KEEPALIVE_FRACTION / 2);
    try {
      const status = await this.connection.attempt((store) => store.leaseTimeToLive(leaseId, true, callOptions));
      if (this.leaseId !== leaseId) return;
      if (status.ttl < 0) this.#lose(leaseGone());
      else {
        this.#armUnverified(askedAtMs);
        this.verified.call(new Set(status.keys), askedAtMs);
      }
    } catch (error) {
      this.#nextVerifyMs = 0;
      log('own keys could not be verified: %s', messageOf(error));
    }
  }
}
