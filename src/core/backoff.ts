/** Pure: how long to wait before trying again. */

export interface BackoffPolicy {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** After the n-th failure in a row (from 1): doubling up to the maximum, of which a random half is taken off so that many clients spread. */
export function backoffMs(policy: BackoffPolicy, failures: number, random: number): number {
  const full = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random;
}
