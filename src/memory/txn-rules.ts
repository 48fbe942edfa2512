import { StoreError, ValueTooLargeError } from '../core/errors.ts';
import type { Compare, Op, PutOp, RangeOp, RangeResult, Target, Txn } from '../core/store.ts';
import { type KeyTree, keysOf, targetHas } from './key-tree.ts';

/** etcd's defaults for `--max-txn-ops` and `--max-request-bytes`. */
const MAX_TXN_OPS = 128;
const MAX_REQUEST_BYTES = 1.5 * 1024 * 1024;
/** What an operation takes in a request beside its key and value: tags and lengths. Measured to within a few bytes. */
const OP_OVERHEAD_BYTES = 20;

const NO_BYTES = new Uint8Array();
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function isWrite(op: Op): boolean {
  return op.type !== 'range';
}

/** `'0'` when the put names no lease. */
export function leaseOf(put: PutOp): string {
  return put.lease ?? '0';
}

export function bytesOf(value: string | Uint8Array): Uint8Array {
  return typeof value === 'string' ? encoder.encode(value) : Uint8Array.from(value);
}

/** Throws for what etcd refuses whatever its state is. */
export function checkTxn(txn: Txn): void {
  const failure = txn.failure ?? [];
  if (Math.max(txn.compares.length, txn.success.length, failure.length) > MAX_TXN_OPS) {
    throw new StoreError(`too many operations in a transaction: at most ${MAX_TXN_OPS} are taken`);
  }
  const ops = [...txn.success, ...failure];
  for (const compare of txn.compares) checkTarget(compare.target);
  for (const op of ops) checkTarget(op.type === 'put' ? op : op.target);
  checkDuplicates(txn.success);
  checkDuplicates(failure);
  if (ops.some(isWrite)) checkSize(txn, ops);
}

export function checkTarget(target: Target): void {
  if ('key' in target && target.key === '') throw new StoreError('a key must not be empty');
}

/**
 * A transaction may put a key once and not also delete it; to delete it twice is fine. etcd does not see that a deletion of
 * everything meets a put, so that goes through.
 */
function checkDuplicates(ops: readonly Op[]): void {
  const deletes = ops.flatMap((op) => (op.type === 'delete' && !isEverything(op.target) ? [op.target] : []));
  const put = new Set<string>();
  for (const op of ops) {
    if (op.type !== 'put') continue;
    const deleted = deletes.some((target) => targetHas(target, op.key));
    if (deleted || put.has(op.key)) throw new StoreError(`a transaction writes the key ${op.key} twice`);
    put.add(op.key);
  }
}

function isEverything(target: Target): boolean {
  return 'prefix' in target && target.prefix === '';
}

function checkSize(txn: Txn, ops: readonly Op[]): void {
  let bytes = 0;
  for (const { target } of txn.compares) bytes += targetBytes(target) + OP_OVERHEAD_BYTES;
  for (const op of ops) bytes += OP_OVERHEAD_BYTES + (op.type === 'put' ? putBytes(op) : targetBytes(op.target));
  if (bytes > MAX_REQUEST_BYTES) {
    throw new ValueTooLargeError(`the request has ${bytes} bytes; the store takes ${MAX_REQUEST_BYTES}`);
  }
}

function putBytes(op: PutOp): number {
  return Buffer.byteLength(op.key) + (typeof op.value === 'string' ? Buffer.byteLength(op.value) : op.value.length);
}

function targetBytes(target: Target): number {
  return 'key' in target ? Buffer.byteLength(target.key) : 2 * Buffer.byteLength(target.prefix);
}

/** On a prefix: whether it holds of every key there is. An empty one is compared as one absent key. */
export function compareHolds(keys: KeyTree, compare: Compare): boolean {
  const found = keysOf(keys, compare.target);
  const operand = BigInt(compare.operand);
  const holds = (actual: bigint): boolean => {
    if (compare.op === '=') return actual === operand;
    if (compare.op === '!=') return actual !== operand;
    return compare.op === '<' ? actual < operand : actual > operand;
  };
  if (found.length === 0) return holds(0n);
  return found.every((kv) => {
    if (compare.field === 'lease') return holds(BigInt(kv.lease));
    if (compare.field === 'version') return holds(BigInt(kv.version));
    return holds(BigInt(compare.field === 'create' ? kv.createRevision : kv.modRevision));
  });
}

export function readRange(keys: KeyTree, op: RangeOp): RangeResult {
  let found = keysOf(keys, op.target, op.from && decoder.decode(op.from));
  const count = found.length;
  if (op.countOnly) return { kvs: [], count };
  const { maxCreateRevision } = op;
  if (maxCreateRevision !== undefined) found = found.filter((kv) => kv.createRevision <= maxCreateRevision);
  const sign = op.newestFirst ? -1 : 1;
  if (op.orderByCreate) found.sort((a, b) => sign * (a.createRevision - b.createRevision));
  const page = op.limit && op.limit < found.length ? found.slice(0, op.limit) : found;
  const kvs = op.keysOnly ? page.map((kv) => ({ ...kv, value: NO_BYTES })) : page;
  const last = page.at(-1);
  // The byte string after a key is the key with a zero byte. Pages by create revision have no such successor.
  if (!last || page.length === found.length || op.orderByCreate) return { kvs, count };
  return { kvs, count, next: encoder.encode(`${last.key}\0`) };
}
