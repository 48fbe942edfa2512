import { LeaseNotFoundError, NoSpaceError } from '../core/errors.ts';
import type {
  Header,
  KeyValue,
  Lease,
  LeaseStatus,
  Op,
  OpResult,
  RangeOp,
  RangeResult,
  Txn,
  TxnResult,
  WatchEvent,
} from '../core/store.ts';
import { type Commit, CommitLog } from './commit-log.ts';
import { type KeyTree, keysOf } from './key-tree.ts';
import { Leases } from './leases.ts';
import { bytesOf, checkTarget, checkTxn, compareHolds, leaseOf, readRange } from './txn-rules.ts';

/** A lone node's term after its first election. The model starts one later, so that a restore lowers it. */
const FIRST_TERM = 2;
/** etcd's lease ids have 63 bits: no number holds them, so neither may a test get away with numbers. */
const LEASE_ID_BASE = 0x694d_7a3c_0000_0000n;
const NO_BYTES = new Uint8Array();

/** All that a backup of a server keeps. */
export interface Snapshot {
  readonly log: CommitLog;
  readonly leases: Leases;
}

export interface ModelOptions {
  /** Lose deletions at the compacted revision as etcd did before 3.4.34 and 3.5.16 (etcd#18089). Default false. */
  readonly dropsDeletesAtCompaction?: boolean | undefined;
}

/**
 * etcd's state machine: revisions, transactions, leases, history and compaction, without clients, clock or network. Every method
 * either does all of its work or throws and does nothing.
 */
export class Model {
  #log = new CommitLog();
  #leases = new Leases();
  #leaseCount = 0n;
  #clusterCount = 1;
  #term = FIRST_TERM + 1;
  readonly #dropsDeletes: boolean;
  readonly #onCommit: (commit: Commit) => void;
  /** The NOSPACE alarm: what could grow the store is refused. */
  noSpace = false;

  constructor(options: ModelOptions, onCommit: (commit: Commit) => void) {
    this.#dropsDeletes = options.dropsDeletesAtCompaction ?? false;
    this.#onCommit = onCommit;
  }

  get header(): Header {
    return { revision: this.#log.last.revision, clusterId: String(this.#clusterCount), term: this.#term };
  }

  get compactRevision(): number {
    return this.#log.compactRevision;
  }

  range(op: RangeOp): RangeResult {
    checkTarget(op.target);
    return readRange(this.#keysAt(op, this.#log.last.keys), op);
  }

  txn(txn: Txn): TxnResult {
    checkTxn(txn);
    const failure = txn.failure ?? [];
    // The branch that is not taken counts as well: etcd decides before it compares.
    if (this.noSpace && [...txn.success, ...failure].some((op) => op.type === 'put')) throw noSpaceError();
    const keys = this.#log.last.keys;
    const succeeded = txn.compares.every((compare) => compareHolds(keys, compare));
    const ops = succeeded ? txn.success : failure;
    // In etcd's order: leases before revisions.
    for (const op of ops) if (op.type === 'put') this.#checkLease(leaseOf(op));
    for (const op of ops) if (op.type === 'range' && op.revision) this.#log.check(op.revision);
    const draft = new Draft(this.#log.last);
    const results = ops.map((op) => this.#apply(draft, op));
    this.#commit(draft);
    return { header: this.header, succeeded, results };
  }

  grant(ttl: number, nowMs: number): Lease {
    if (this.noSpace) throw noSpaceError();
    const id = String(LEASE_ID_BASE + ++this.#leaseCount);
    return { id, ttl: this.#leases.grant(id, ttl, nowMs) };
  }

  /** Deletes the lease and, in one revision, all keys on it. Nothing happens when there is no such lease. */
  revoke(id: string): void {
    const draft = new Draft(this.#log.last);
    for (const key of this.#leases.remove(id)) draft.delete(key);
    this.#commit(draft);
  }

  /** The seconds it was renewed for; 0 when there is no such lease. */
  keepAlive(id: string, nowMs: number): number {
    return this.#leases.renew(id, nowMs);
  }

  timeToLive(id: string, withKeys: boolean, nowMs: number): LeaseStatus {
    return this.#leases.status(id, withKeys, nowMs);
  }

  /** Revokes what has expired, one revision a lease. */
  expire(nowMs: number): void {
    for (const id of this.#leases.expired(nowMs)) this.revoke(id);
  }

  nextDeadlineMs(): number | undefined {
    return this.#leases.nextDeadlineMs();
  }

  /** The commits from a revision on; none when it lies ahead. Throws CompactedError. */
  since(revision: number): readonly Commit[] {
    return this.#log.since(revision);
  }

  compact(revision: number): void {
    this.#log.compact(revision, this.#dropsDeletes);
  }

  /** A new leader was elected. */
  elect(nowMs: number): void {
    this.#term++;
    this.#leases.rearm(nowMs);
  }

  snapshot(): Snapshot {
    return { log: this.#log.clone(), leases: this.#leases.clone() };
  }

  /** Goes back to a snapshot. The cluster keeps its id and starts its terms anew. */
  restore(snapshot: Snapshot, nowMs: number): void {
    this.#log = snapshot.log.clone();
    this.#leases = snapshot.leases.clone();
    this.#leases.rearm(nowMs);
    this.#term = FIRST_TERM;
  }

  /** Another, empty cluster takes the place of this one. */
  wipe(): void {
    this.#log = new CommitLog();
    this.#leases = new Leases();
    this.#clusterCount++;
    this.#term = FIRST_TERM + 1;
  }

  #checkLease(id: string): void {
    if (id !== '0' && !this.#leases.has(id)) throw new LeaseNotFoundError(`there is no lease ${id} (any more)`);
  }

  #apply(draft: Draft, op: Op): OpResult {
    if (op.type === 'range') return { type: 'range', ...readRange(this.#keysAt(op, draft.keys), op) };
    if (op.type === 'put') {
      const old = draft.put(op.key, bytesOf(op.value), leaseOf(op));
      if (old) this.#leases.detach(old.lease, op.key);
      this.#leases.attach(leaseOf(op), op.key);
      return { type: 'put' };
    }
    const doomed = keysOf(draft.keys, op.target);
    for (const kv of doomed) {
      draft.delete(kv.key);
      this.#leases.detach(kv.lease, kv.key);
    }
    return { type: 'delete', deleted: doomed.length };
  }

  #keysAt(op: RangeOp, current: KeyTree): KeyTree {
    return op.revision ? this.#log.at(op.revision).keys : current;
  }

  /** What wrote nothing makes no revision. */
  #commit({ revision, events, keys }: Draft): void {
    if (events.length === 0) return;
    const commit = { revision, events, keys };
    this.#log.append(commit);
    this.#onCommit(commit);
  }
}

/** The next revision while it is made. */
class Draft {
  readonly revision: number;
  readonly events: WatchEvent[] = [];
  keys: KeyTree;

  constructor(last: Commit) {
    this.revision = last.revision + 1;
    this.keys = last.keys;
  }

  /** The key as it was before. */
  put(key: string, value: Uint8Array, lease: string): KeyValue | undefined {
    const old = this.keys.get(key);
    const createRevision = old?.createRevision ?? this.revision;
    const version = (old?.version ?? 0) + 1;
    const kv: KeyValue = { key, value, createRevision, modRevision: this.revision, version, lease };
    this.#own().set(key, kv);
    this.events.push({ type: 'put', kv });
    return old;
  }

  delete(key: string): void {
    this.#own().delete(key);
    const kv = { key, value: NO_BYTES, createRevision: 0, modRevision: this.revision, version: 0, lease: '0' };
    this.events.push({ type: 'delete', kv });
  }

  #own(): KeyTree {
    if (this.events.length === 0) this.keys = this.keys.clone();
    return this.keys;
  }
}

function noSpaceError(): NoSpaceError {
  return new NoSpaceError('the store is out of space; compact and defragment it, then disarm its alarm');
}
