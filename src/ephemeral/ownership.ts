import type { Compare, KeyValue } from '../core/store.ts';

/** Pure: what a registration knows of its key in the store, and what it may do about it. */

/** The key as it was last seen to be ours. */
export interface Held {
  readonly lease: string;
  readonly modRevision: number;
}

export type Finding =
  | { readonly kind: 'absent' }
  | { readonly kind: 'ours'; readonly held: Held; readonly value: string }
  | { readonly kind: 'foreign'; readonly lease: string };

/** What a stored key means to its registrant. `isOurs` knows the leases that this process has and had. */
export function judge(kv: KeyValue | undefined, isOurs: (lease: string) => boolean): Finding {
  if (!kv) return { kind: 'absent' };
  if (kv.lease === '0' || !isOurs(kv.lease)) return { kind: 'foreign', lease: kv.lease };
  const value = Buffer.from(kv.value.buffer, kv.value.byteOffset, kv.value.byteLength).toString();
  return { kind: 'ours', held: { lease: kv.lease, modRevision: kv.modRevision }, value };
}

/** A write is done only over what we know to be ours, or where nothing is. */
export function unchangedSince(key: string, held: Held | undefined): Compare[] {
  const target = { key };
  if (!held) return [{ target, field: 'create', op: '=', operand: 0 }];
  return [
    { target, field: 'lease', op: '=', operand: held.lease },
    { target, field: 'mod', op: '=', operand: held.modRevision },
  ];
}

/** A key on a lease may be about to expire with its owner: so long (ms) it is waited for. */
export function patienceMs(ownTtlMs: number, ownersTtlMs: number): number {
  return Math.max(2 * ownTtlMs, ownersTtlMs + 2_000);
}
