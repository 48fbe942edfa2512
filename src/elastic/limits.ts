/** The plan's constants, each with where its number comes from. */

/** An answer older than this proves nothing: a member that answered a second ago was alive within etcd's election timeout of 1 s. */
export const FRESH_MS = 1_000;

/** etcd refuses to add a member while a voter has been connected for less (its HealthInterval). */
export const CONNECTED_MS = 5_000;

/** A recorded change that never began: past etcd's own 5 s refusals, and twice that. */
export const OPEN_LIMIT_MS = 15_000;

/** A learner that neither receives nor applies anything for so long is given up: five times what a first snapshot's silence took. */
export const NO_PROGRESS_MS = 30_000;

/** A nominee may have begun its promotion just before it was withdrawn; its call lives no longer than this. */
export const PROMOTE_CALL_MS = 1_000;

/** A membership call begins no later than this after the look that justified it. */
export const CALL_LIMIT_MS = 1_500;

/** What a step has changed by itself is taken into the look before it for so long; then everything is looked at again. */
export const CARRY_MS = 250;

/** From withdrawal until nothing of the promotion can be under way: its call's life and one more second for skewed timers. */
export const WITHDRAWN_MS = 2 * PROMOTE_CALL_MS;

/** How long a member that is to go is waited for to take itself off the clients' list: its agent does so at once, or not at all. */
export const UNLIST_MS = 1_000;

/** After an outage of all, a machine that was started last may still test its memory and check its disks. */
export const OUTAGE_MS = 300_000;

/** Member ids hash the URLs and the second: the same URLs removed and added within one second would get the removed id again. */
export const SAME_ID_MS = 1_100;

/** A learner may be promoted when it lags no more than so many entries, or than this part of the log. */
export const LAG_ENTRIES = 100;
export const LAG_PART = 0.01;

/** How long a host that failed to join is left alone: 30 s, doubled each time, at most so long. */
const BACKOFF_MS = 30_000;
const BACKOFF_LIMIT_MS = 600_000;

export function backoffAfter(failures: number): number {
  return Math.min(BACKOFF_MS * 2 ** (failures - 1), BACKOFF_LIMIT_MS);
}

/** Sizes an operator may ask for. */
export const SIZE_MIN = 1;
export const SIZE_MAX = 99;
export const SIZE_DEFAULT = 5;
