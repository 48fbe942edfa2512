/**
 * What the core needs of a key-value store with etcd's semantics: revisions, transactions, leases, watches and compaction.
 *
 * Two adapters implement it: `etcd` over a real cluster and `memory` over a model. Nothing above this file knows which one it
 * talks to. Keys are text; a stored key that is not valid UTF-8 is decoded with U+FFFD in place of what does not fit, which no
 * path of ours can contain, so such a key can be seen and skipped but never addressed. Values are bytes and pass unaltered.
 */

/** What every answer says about the store that gave it. */
export interface Header {
  /** The store's revision when it answered. */
  readonly revision: number;
  /** Differs when another cluster answers at the same address. */
  readonly clusterId: string;
  /** Only rises in the life of a cluster; a lower one means that the store was restored. */
  readonly term: number;
}

export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly modRevision: number;
  /** 1 for a key just created; +1 for each put since. */
  readonly version: number;
  /** Decimal lease id; `'0'` when the key hangs on no lease. */
  readonly lease: string;
}

/** One key, or every key that starts with a prefix. */
export type Target = { readonly key: string } | { readonly prefix: string };

/**
 * A condition of a transaction. On an absent key, `create`, `mod` and `version` are 0 and `lease` is `'0'`. With a prefix the
 * condition must hold of every key under it, so `create = 0` on a prefix says that nothing lies under it.
 */
export interface Compare {
  readonly target: Target;
  readonly field: 'create' | 'mod' | 'version' | 'lease';
  readonly op: '=' | '!=' | '<' | '>';
  readonly operand: number | string;
}

export interface PutOp {
  readonly type: 'put';
  readonly key: string;
  readonly value: string | Uint8Array;
  readonly lease?: string | undefined;
}

export interface DeleteOp {
  readonly type: 'delete';
  readonly target: Target;
}

export interface RangeOp {
  readonly type: 'range';
  readonly target: Target;
  /** Leave the values out; `value` is then empty. */
  readonly keysOnly?: boolean | undefined;
  /** Only `count` is answered. */
  readonly countOnly?: boolean | undefined;
  /** At most so many keys; the rest is reached through `next`. */
  readonly limit?: number | undefined;
  /** Read the past. Refused with CompactedError where history has been compacted. */
  readonly revision?: number | undefined;
  /** Where a page before this one ended: its `next`. */
  readonly from?: Uint8Array | undefined;
  /** Order by create revision, oldest first. Default: by the bytes of the key. */
  readonly orderByCreate?: boolean | undefined;
  /** With `orderByCreate`: newest first. */
  readonly newestFirst?: boolean | undefined;
  /** Leave out keys created after this revision (`count` may still count them). */
  readonly maxCreateRevision?: number | undefined;
}

export type Op = PutOp | DeleteOp | RangeOp;

export interface RangeResult {
  readonly kvs: readonly KeyValue[];
  /** All keys of the target, also those beyond `limit`. */
  readonly count: number;
  /** Set when there is more: pass it as `from`. */
  readonly next?: Uint8Array | undefined;
}

export type OpResult =
  | { readonly type: 'put' }
  | { readonly type: 'delete'; readonly deleted: number }
  | ({ readonly type: 'range' } & RangeResult);

/** The first key of a range's answer. */
export function firstKey(result: OpResult | undefined): KeyValue | undefined {
  return result?.type === 'range' ? result.kvs[0] : undefined;
}

export interface Txn {
  /** All must hold for `success` to be done; otherwise `failure` is. */
  readonly compares: readonly Compare[];
  readonly success: readonly Op[];
  readonly failure?: readonly Op[] | undefined;
}

export interface TxnResult {
  readonly header: Header;
  readonly succeeded: boolean;
  readonly results: readonly OpResult[];
}

export interface CallOptions {
  /** Milliseconds after which the call fails with ConnectionError. A write may then have been done or not. */
  readonly timeoutMs: number;
}

export interface Lease {
  readonly id: string;
  /** Seconds, as granted: a server raises what is below its floor. */
  readonly ttl: number;
}

export interface LeaseStatus {
  /** Seconds left; -1 when there is no such lease. */
  readonly ttl: number;
  /** Seconds it was granted for; 0 when there is no such lease. */
  readonly grantedTtl: number;
  readonly keys: readonly string[];
}

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** Of a deletion: the key and, as `modRevision`, the revision of the deletion; nothing else. */
  readonly kv: KeyValue;
}

export interface WatchRequest {
  readonly target: Target;
  /** The first revision wanted. */
  readonly startRevision: number;
}

export interface WatchObserver {
  /** The store accepted the watch; events follow. */
  onCreated(id: number): void;
  /** All events of one or more whole revisions, in order. */
  onEvents(id: number, events: readonly WatchEvent[]): void;
  /** This watch is over (CompactedError, PermissionDeniedError, UnauthenticatedError …); the stream goes on. */
  onCanceled(id: number, error: Error): void;
  /** The stream is over and every watch on it with it. Called at most once, and not after `close()`. */
  onEnd(error: Error): void;
}

/** Many watches on one stream. Ids are the caller's, unique within the stream. */
export interface WatchStream {
  create(id: number, request: WatchRequest): void;
  cancel(id: number): void;
  close(): void;
}

export interface KeepAliveObserver {
  /** The store renewed the lease for `ttl` seconds; 0 or less: there is no such lease. */
  onAlive(leaseId: string, ttl: number): void;
  /** As for watches. */
  onEnd(error: Error): void;
}

export interface KeepAliveStream {
  send(leaseId: string): void;
  close(): void;
}

/**
 * One connection to a store. Calls reject with an EphemeralError; a ConnectionError leaves open whether a write was done, every
 * other error means that it was not.
 */
export interface Store {
  /** The address in use, for messages. */
  readonly endpoint: string;
  /**
   * Drops the transport in use, with all its streams (whose `onEnd` is not called), and proves a new one, to the next endpoint
   * where there are several, with a linearizable read.
   */
  connect(options: CallOptions): Promise<Header>;
  range(op: RangeOp, options: CallOptions): Promise<RangeResult & { readonly header: Header }>;
  txn(txn: Txn, options: CallOptions): Promise<TxnResult>;
  leaseGrant(ttl: number, options: CallOptions): Promise<Lease>;
  /** Resolves also when there is no such lease. */
  leaseRevoke(id: string, options: CallOptions): Promise<void>;
  leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus>;
  openWatch(observer: WatchObserver): WatchStream;
  openKeepAlive(observer: KeepAliveObserver): KeepAliveStream;
  /** Ends everything; pending calls reject with ConnectionError. */
  close(): void;
}
