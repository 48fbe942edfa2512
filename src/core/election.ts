import { backoffMs } from './backoff.ts';
import { sleep } from './clock.ts';
import type { Connection } from './connection.ts';
import { EphemeralError } from './errors.ts';
import { UnsettledWriteError } from './fence.ts';
import { debugLog, messageOf } from './log.ts';
import { type Session, SessionLostError } from './session.ts';
import { firstKey, type Op } from './store.ts';
import type { Watch, WatchHub } from './watch-hub.ts';

const log = debugLog('election');

/** What a leader holds: its lock's key and the revision that created it, which every write of its compares. */
export interface Lock {
  readonly key: string;
  readonly createRevision: number;
}

export interface ElectionEvents {
  onLeading(lock: Lock): void;
  /** In line behind another one; told again when that one changes. */
  onWaiting(): void;
  /** Leadership is over: the session was lost, or someone deleted the lock. A new campaign begins by itself. */
  onDeposed(): void;
  /** Taking part is not allowed. The campaign goes on trying, slowly. */
  onRefused(error: EphemeralError): void;
}

/** Refusals are looked at again about this often (ms): an operator may grant the permission. */
const REFUSED_PAUSE_MS = 30_000;
const BACKOFF = { firstMs: 50, maxMs: 1_000 };

/**
 * One seat for all who campaign under a prefix: each puts one key on its session's lease, and the oldest leads. A contender
 * watches only the key just before its own, so that a change wakes one, not all.
 */
export class Election {
  readonly #connection: Connection;
  readonly #hub: WatchHub;
  readonly #session: Session;
  readonly #prefix: string;
  readonly #events: ElectionEvents;
  readonly #stop = new AbortController();
  readonly #off: readonly (() => void)[];
  #own: Lock | undefined;
  /** The lease on which a lock may have been put. */
  #attempted: string | undefined;
  #isLeading = false;
  #watch: Watch | undefined;
  #round = 0;

  constructor(connection: Connection, hub: WatchHub, session: Session, prefix: string, events: ElectionEvents) {
    this.#connection = connection;
    this.#hub = hub;
    this.#session = session;
    this.#prefix = prefix;
    this.#events = events;
    this.#off = [
      session.alive.add(() => this.#campaign()),
      session.lost.add(() => this.#leave()),
      session.refused.add((error) => events.onRefused(error)),
      session.verified.add((keys) => {
        if (this.#own && !keys.has(this.#own.key)) this.#campaign();
      }),
    ];
    if (session.leaseId !== undefined) this.#campaign();
  }

  /** The lock of this contender, leading or waiting; undefined while it has none. */
  get lock(): Lock | undefined {
    return this.#own;
  }

  get isLeading(): boolean {
    return this.#isLeading;
  }

  /**
   * Gives up the seat, or the place in line. Whoever leaves nobody behind does `last`.
   */
  async resign(last: readonly Op[] = []): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    for (const off of this.#off) off();
    const own = this.#own;
    this.#leave();
    this.#own = undefined;
    if (!own || this.#connection.state === 'closed') return;
    try {
      if (last.length > 0) await this.#giveBackWith(own, last);
      else await this.#giveBack(own);
    } catch (error) {
      log('lock %s was not given back: %s', own.key, messageOf(error));
    }
  }

  #leave(): void {
    this.#round += 1;
    this.#watch?.close();
    this.#watch = undefined;
    if (!this.#isLeading) return;
    this.#isLeading = false;
    log('no longer leading under %s', this.#prefix);
    this.#events.onDeposed();
  }

  #campaign(): void {
    this.#leave();
    const round = this.#round;
    void this.#enter(round).catch((error: unknown) => {
      if (!this.#stop.signal.aborted && !this.#connection.closing.aborted) log('campaign ended: %s', messageOf(error));
    });
  }

  /** True when nothing has happened since the round began that begins another. */
  #stands(round: number): boolean {
    return round === this.#round && !this.#stop.signal.aborted;
  }

  async #enter(round: number): Promise<void> {
    const { clock, closing } = this.#connection;
    for (let failures = 1; this.#stands(round); failures += 1) {
      try {
        if (await this.#putLock(round)) await this.#takePlace(round);
        return;
      } catch (error) {
        if (error instanceof UnsettledWriteError) await this.#session.settle(error.fence);
        if (error instanceof SessionLostError || !this.#stands(round)) {
          if (this.#stop.signal.aborted) this.#giveBackUnseen();
          return;
        }
        const refused = error instanceof EphemeralError && !error.retryable;
        if (refused && this.#stands(round)) this.#events.onRefused(error);
        log('campaign under %s: %s', this.#prefix, messageOf(error));
        const waitMs = refused ? REFUSED_PAUSE_MS : backoffMs(BACKOFF, failures, clock.random());
        await sleep(clock, waitMs, closing);
      }
    }
  }

  /** Puts our key unless it stands already. A lock left on a lease of before is taken away: it would hold up the line. */
  async #putLock(round: number): Promise<boolean> {
    const lease = this.#session.leaseId;
    if (lease === undefined) throw new SessionLostError('there is no lease now');
    this.#attempted = lease;
    const key = this.#prefix + lease;
    const left =
      this.#own && this.#own.key !== key ? [{ type: 'delete', target: { key: this.#own.key } } as const] : [];
    const answer = await this.#session.write({
      compares: [{ target: { key }, field: 'create', op: '=', operand: 0 }],
      success: [{ type: 'put', key, value: '', lease }, ...left],
      failure: [{ type: 'range', target: { key }, keysOnly: true }],
    });
    const createRevision = answer.succeeded ? answer.header.revision : firstKey(answer.results[0])?.createRevision;
    if (createRevision === undefined) throw new UnsettledWriteError(-1, new Error('the lock vanished'));
    this.#own = { key, createRevision };
    if (this.#stands(round)) return true;
    if (this.#stop.signal.aborted) await this.#giveBack(this.#own);
    return false;
  }

  /**
   * In one, so that of several who leave at the same moment one is the last. Nobody else puts a key of this name; should it be that
   * of our own next place in line, that one looks again.
   */
  async #giveBackWith(own: Lock, last: readonly Op[]): Promise<void> {
    const giveBack: Op = { type: 'delete', target: { key: own.key } };
    await this.#connection.txn({
      compares: [
        { target: { key: own.key }, field: 'create', op: '=', operand: own.createRevision },
        { target: { prefix: this.#prefix }, field: 'create', op: '=', operand: own.createRevision },
      ],
      success: [...last, giveBack],
      failure: [giveBack],
    });
  }

  /**
   * The lock of one who resigned while it was being put: left on a lease that lives, it would hold up the line for good. It is looked
   * for when the lease is ours (again), after which no late write can put it.
   */
  #giveBackUnseen(): void {
    const attempted = this.#attempted;
    if (attempted === undefined) return;
    const look = async (lease: string) => {
      off();
      if (lease !== attempted) return;
      const key = this.#prefix + lease;
      const stored = (await this.#connection.range({ type: 'range', target: { key }, keysOnly: true })).kvs[0];
      if (stored) await this.#giveBack({ key, createRevision: stored.createRevision });
    };
    const looked = (lease: string) => {
      look(lease).catch((error: unknown) =>
        log('a lock under %s was not given back: %s', this.#prefix, messageOf(error)),
      );
    };
    const off = this.#session.alive.add(looked);
    if (this.#session.leaseId !== undefined) looked(this.#session.leaseId);
  }

  async #giveBack(own: Lock): Promise<void> {
    this.#own = undefined;
    await this.#connection.txn({
      compares: [{ target: { key: own.key }, field: 'create', op: '=', operand: own.createRevision }],
      success: [{ type: 'delete', target: { key: own.key } }],
    });
  }

  async #takePlace(round: number): Promise<void> {
    const own = this.#own;
    if (!own) return;
    const answer = await this.#connection.txn({
      compares: [{ target: { key: own.key }, field: 'create', op: '=', operand: own.createRevision }],
      success: [
        {
          type: 'range',
          target: { prefix: this.#prefix },
          keysOnly: true,
          limit: 1,
          orderByCreate: true,
          newestFirst: true,
          maxCreateRevision: own.createRevision - 1,
        },
      ],
    });
    if (!this.#stands(round)) return;
    if (!answer.succeeded) return this.#campaign();
    const ahead = firstKey(answer.results[0]);
    this.#watchLock(round, ahead?.key ?? own.key, answer.header.revision + 1, answer.epoch);
    if (ahead) {
      log('behind %s under %s', ahead.key, this.#prefix);
      this.#events.onWaiting();
      return;
    }
    this.#isLeading = true;
    log('leading under %s since revision %d', this.#prefix, own.createRevision);
    this.#events.onLeading(own);
  }

  /** The key ahead, or our own when we lead: when it goes, we look again. */
  #watchLock(round: number, key: string, fromRevision: number, epoch: number): void {
    const again = () => {
      if (this.#stands(round)) this.#campaign();
    };
    this.#watch = this.#hub.watch({ key }, fromRevision, epoch, {
      onEvents: (events) => {
        if (events.some((event) => event.type === 'delete')) again();
      },
      onGap: again,
      onRefused: (error) => {
        if (this.#stands(round)) this.#events.onRefused(error);
      },
    });
  }
}
