import { StoreError } from '../core/errors.ts';
import type { LeaseStatus } from '../core/store.ts';
import { compareKeys } from './key-tree.ts';

/** etcd grants no less: one and a half election timeouts (1 s by default), rounded up. Seconds. */
const MIN_TTL = 2;
/** etcd grants no more. Seconds. */
const MAX_TTL = 9_000_000_000;
/** A new leader gives every lease its ttl and an election timeout on top, as nobody could renew during the election. */
const ELECTION_TIMEOUT_MS = 1_000;

interface LeaseEntry {
  readonly ttl: number;
  deadlineMs: number;
  readonly keys: Set<string>;
}

/** The leases and the keys on them. Times come in as arguments. */
export class Leases {
  readonly #byId = new Map<string, LeaseEntry>();

  grant(id: string, ttl: number, nowMs: number): number {
    if (ttl > MAX_TTL) throw new StoreError('too large lease TTL');
    const granted = Math.max(MIN_TTL, Math.trunc(ttl));
    this.#byId.set(id, { ttl: granted, deadlineMs: nowMs + granted * 1_000, keys: new Set() });
    return granted;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** The granted ttl in seconds; 0 when there is no such lease. */
  renew(id: string, nowMs: number): number {
    const lease = this.#byId.get(id);
    if (!lease) return 0;
    lease.deadlineMs = nowMs + lease.ttl * 1_000;
    return lease.ttl;
  }

  /** As a new leader does: all of them live their whole ttl again. */
  rearm(nowMs: number): void {
    for (const lease of this.#byId.values()) lease.deadlineMs = nowMs + lease.ttl * 1_000 + ELECTION_TIMEOUT_MS;
  }

  /** Removes the lease; the keys that hung on it, sorted. */
  remove(id: string): readonly string[] {
    const keys = [...(this.#byId.get(id)?.keys ?? [])].sort(compareKeys);
    this.#byId.delete(id);
    return keys;
  }

  attach(id: string, key: string): void {
    this.#byId.get(id)?.keys.add(key);
  }

  detach(id: string, key: string): void {
    this.#byId.get(id)?.keys.delete(key);
  }

  status(id: string, withKeys: boolean, nowMs: number): LeaseStatus {
    const lease = this.#byId.get(id);
    if (!lease) return { ttl: -1, grantedTtl: 0, keys: [] };
    const ttl = Math.max(0, Math.trunc((lease.deadlineMs - nowMs) / 1_000));
    return { ttl, grantedTtl: lease.ttl, keys: withKeys ? [...lease.keys].sort(compareKeys) : [] };
  }

  /** Those whose time is over, the earliest first. */
  expired(nowMs: number): readonly string[] {
    return [...this.#byId]
      .filter(([, lease]) => lease.deadlineMs <= nowMs)
      .sort(([, a], [, b]) => a.deadlineMs - b.deadlineMs)
      .map(([id]) => id);
  }

  nextDeadlineMs(): number | undefined {
    let next: number | undefined;
    for (const { deadlineMs } of this.#byId.values()) if (next === undefined || deadlineMs < next) next = deadlineMs;
    return next;
  }

  clone(): Leases {
    const copy = new Leases();
    for (const [id, lease] of this.#byId) copy.#byId.set(id, { ...lease, keys: new Set(lease.keys) });
    return copy;
  }
}
