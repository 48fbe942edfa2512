import type { Lease } from './store.ts';

/** What was done for the lease while our own event loop may have stood still. */
export interface StandbyNews {
  /** By the session's clock: when the newest acknowledged keepalive was sent. */
  readonly renewedAtMs?: number | undefined;
  /** The store said that there is no such lease. */
  readonly isGone?: boolean | undefined;
  /** Which keys hung on the lease, asked for at `askedAtMs`. */
  readonly verified?: { readonly keys: readonly string[]; readonly askedAtMs: number } | undefined;
}

/**
 * Somebody outside of our event loop who renews the session's lease when we do not, for as long as we have moved within a bound: a
 * computation that takes long is lived through, a process that hangs is not.
 */
export interface Standby {
  /** This lease from now on, renewed last at `renewedAtMs`. */
  guard(lease: Lease, renewedAtMs: number): void;
  /** We have renewed it ourselves. */
  renewed(sentMs: number): void;
  /** What it has done for the lease that it guards, since this was last asked. Never waits. */
  takeNews(): StandbyNews | undefined;
  /** No lease any more. */
  release(): void;
  close(): Promise<void>;
}

export interface StandbySituation {
  readonly nowMs: number;
  readonly ttlMs: number;
  /** When the other thread was last seen to move. */
  readonly movedMs: number;
  readonly stallLimitMs: number;
  /** The send time of the newest acknowledged keepalive, whoever sent it. */
  readonly renewedAtMs: number;
  /** When the stand-in's own link last carried a keepalive. */
  readonly provedMs: number;
}

/** A keepalive goes out each quarter of a ttl: one that has not come by then, and a tenth for its way, is overdue. */
const OVERDUE_FRACTION = 0.35;

/**
 * What the stand-in is to do. `prove`: all is well, and it only makes sure, once a ttl, that its own link would carry a keepalive;
 * one that died in silence is noticed before it is needed.
 */
export function standbyDuty(situation: StandbySituation): 'renew' | 'prove' | 'nothing' {
  const { nowMs, ttlMs, movedMs, stallLimitMs, renewedAtMs, provedMs } = situation;
  if (nowMs - movedMs > stallLimitMs) return 'nothing';
  if (nowMs - renewedAtMs > ttlMs * OVERDUE_FRACTION) return 'renew';
  return nowMs - provedMs > ttlMs ? 'prove' : 'nothing';
}
