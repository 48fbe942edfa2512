import type { Timer } from './clock.ts';
import type { Connection, Link } from './connection.ts';
import { ConnectionError, EphemeralError, RevokedError } from './errors.ts';
import { debugLog } from './log.ts';
import { onAbort } from './on-abort.ts';
import type { KeepAliveStream, Lease } from './store.ts';

const log = debugLog('session');

/**
 * A keepalive goes out each quarter of the ttl: after a cut at the worst moment three quarters are left, of which an outage may
 * take half a ttl and the reconnect the rest.
 */
export const KEEPALIVE_FRACTION = 0.25;
/** An answer that is a whole period late makes the link suspect; this much longer (ms) lets a stalled event loop read it first. */
const STALL_GRACE_MS = 50;

export interface KeepAliveEvents {
  /** The lease is no longer ours: by our own clock, or because the store said so. */
  onLost(error: EphemeralError): void;
  /** Called each period, after the keepalive went out. */
  onPeriod(): void;
  /** A keepalive was answered, or not in time. */
  onBeat(ok: boolean): void;
  /** A keepalive that was sent then has been answered. */
  onRenewed(sentMs: number): void;
  /** The deadline has passed: whoever knows of a later renewal says so now, with `renewed`. */
  onDeadline(): void;
}

/** Renews one lease on one stream, and gives it up at the send time of the last answered keepalive plus the granted ttl. */
export class KeepAlive {
  readonly #connection: Connection;
  readonly #lease: Lease;
  readonly #events: KeepAliveEvents;
  readonly #off: readonly (() => void)[];
  readonly #timers = new Set<Timer>();
  #stream: KeepAliveStream | undefined;
  /** When each unanswered keepalive was sent, oldest first: answers come in order. */
  #sentAtMs: number[] = [];
  #deadlineMs: number;
  #isOver = false;

  constructor(connection: Connection, lease: Lease, renewedAtMs: number, events: KeepAliveEvents) {
    this.#connection = connection;
    this.#lease = lease;
    this.#events = events;
    this.#deadlineMs = renewedAtMs + lease.ttl * 1_000;
    this.#off = [
      connection.linkUp.add((link) => this.#openStream(link)),
      connection.linkDown.add(() => this.#dropStream()),
    ];
    if (connection.link) this.#openStream(connection.link);
    this.#armDeadline();
    this.#armPeriod();
  }

  /** Until when (by the clock) the lease is ours if nothing more is heard. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Somebody else renewed the lease with a keepalive that was sent then. */
  renewed(sentMs: number): void {
    this.#deadlineMs = Math.max(this.#deadlineMs, sentMs + this.#lease.ttl * 1_000);
  }

  stop(): void {
    this.#isOver = true;
    for (const off of this.#off) off();
    for (const timer of this.#timers) timer.clear();
    this.#timers.clear();
    this.#dropStream();
  }

  #lose(error: EphemeralError): void {
    if (this.#isOver) return;
    this.stop();
    this.#events.onLost(error);
  }

  #after(ms: number, then: () => void): void {
    const timer = this.#connection.clock.setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }

  #armDeadline(): void {
    const { clock, store } = this.#connection;
    this.#after(Math.max(0, this.#deadlineMs - clock.now()), () => {
      this.#events.onDeadline();
      if (this.#isOver) return;
      if (clock.now() < this.#deadlineMs) return this.#armDeadline();
      this.#lose(new ConnectionError(`no keepalive was answered by ${store.endpoint} for a whole ttl`));
    });
  }

  #armPeriod(): void {
    this.#after(this.#lease.ttl * 1_000 * KEEPALIVE_FRACTION, () => {
      this.#armPeriod();
      this.#beat();
      this.#events.onPeriod();
    });
  }

  #beat(): void {
    const { link } = this.#connection;
    if (!link) this.#events.onBeat(false);
    else if (this.#sentAtMs.length > 0) this.#doubt(link);
    else if (this.#stream) this.#send();
    else this.#openStream(link);
  }

  #send(): void {
    this.#sentAtMs.push(this.#connection.clock.now());
    this.#stream?.send(this.#lease.id);
  }

  /** The last keepalive is unanswered a period later: if our own loop was not what stalled, the link has failed. */
  #doubt(link: Link): void {
    const waiting = this.#sentAtMs[0];
    this.#after(STALL_GRACE_MS, () => {
      if (this.#sentAtMs[0] !== waiting) return;
      this.#events.onBeat(false);
      const { endpoint } = this.#connection.store;
      this.#connection.suspect(link.generation, new ConnectionError(`${endpoint} leaves keepalives unanswered`));
    });
  }

  #openStream(link: Link): void {
    this.#dropStream();
    const { store } = this.#connection;
    this.#stream = store.openKeepAlive({
      onAlive: (id, ttl) => this.#answered(id, ttl),
      onEnd: (error) => {
        this.#stream = undefined;
        this.#connection.suspect(link.generation, keepAliveError(error, store.endpoint));
      },
    });
    this.#send();
  }

  #answered(id: string, ttl: number): void {
    const sentMs = this.#sentAtMs.shift();
    if (id !== this.#lease.id || sentMs === undefined) return;
    if (ttl <= 0) {
      this.#lose(leaseGone());
      return;
    }
    const { clock } = this.#connection;
    this.#connection.heard(0);
    this.#deadlineMs = Math.max(this.#deadlineMs, sentMs + ttl * 1_000);
    this.#events.onRenewed(sentMs);
    this.#events.onBeat(true);
    log('lease %s renewed, %d ms after it was asked for', id, Math.round(clock.now() - sentMs));
  }

  #dropStream(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#sentAtMs = [];
  }
}

/** The send time of one answered keepalive, or undefined when the store has no such lease. */
export function renewOnce(connection: Connection, lease: Lease, link: Link): Promise<number | undefined> {
  const { clock, store, callOptions, closing } = connection;
  return new Promise((resolve, reject) => {
    if (closing.aborted) return reject(closing.reason);
    const sentMs = clock.now();
    const done = () => {
      timer.clear();
      off();
      offClose();
      stream.close();
    };
    const offClose = onAbort(closing, () => {
      done();
      reject(closing.reason);
    });
    const fail = (error: EphemeralError) => {
      done();
      connection.suspect(link.generation, error);
      reject(error);
    };
    const off = connection.linkDown.add((error) => {
      done();
      reject(error);
    });
    const timer = clock.setTimeout(
      () => fail(new ConnectionError(`${store.endpoint} did not answer a keepalive in ${callOptions.timeoutMs} ms`)),
      callOptions.timeoutMs,
    );
    const stream = store.openKeepAlive({
      onAlive: (_id, ttl) => {
        done();
        resolve(ttl > 0 ? sentMs : undefined);
      },
      onEnd: (error) => fail(keepAliveError(error, store.endpoint)),
    });
    stream.send(lease.id);
  });
}

export function leaseGone(): RevokedError {
  return new RevokedError('the store no longer has the lease: it expired or was revoked');
}

function keepAliveError(error: Error, endpoint: string): EphemeralError {
  return error instanceof EphemeralError
    ? error
    : new ConnectionError(`the keepalive stream to ${endpoint} ended: ${error.message}`, { cause: error });
}
