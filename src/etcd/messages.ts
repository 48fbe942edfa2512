/** Requests and answers: the store's terms into etcd's, and back. Pure. */
import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IKeyValue,
  type IRangeRequest,
  type IRangeResponse,
  type IRequestOp,
  type IResponseHeader,
  type IResponseOp,
  type ITxnRequest,
  type ITxnResponse,
  SortOrder,
  SortTarget,
} from 'etcd3';
import type {
  Compare,
  Header,
  KeyValue,
  Op,
  OpResult,
  RangeOp,
  RangeResult,
  Target,
  Txn,
  TxnResult,
} from '../core/store.ts';

const NO_VALUE = Buffer.alloc(0);
/** As a key: the first there can be. As a range's end: no end. */
const ZERO_BYTE = Buffer.from([0]);

export interface KeyRange {
  readonly key: Buffer;
  readonly range_end?: Buffer;
}

/** The keys of a target, as etcd names them: from `key` up to, not including, `range_end`. */
export function keyRange(target: Target): KeyRange {
  if ('key' in target) return { key: Buffer.from(target.key) };
  if (target.prefix === '') return { key: ZERO_BYTE, range_end: ZERO_BYTE };
  const key = Buffer.from(target.prefix);
  const end = Buffer.from(key);
  // UTF-8 has no byte 0xff, so the last one can always be raised.
  const last = end.length - 1;
  end[last] = (end[last] as number) + 1;
  return { key, range_end: end };
}

function toBuffer(value: string | Uint8Array): Buffer {
  if (typeof value === 'string') return Buffer.from(value);
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

export function rangeRequest(op: RangeOp): IRangeRequest {
  const request: IRangeRequest = keyRange(op.target);
  if (op.from !== undefined) request.key = toBuffer(op.from);
  if (op.keysOnly) request.keys_only = true;
  if (op.countOnly) request.count_only = true;
  if (op.limit !== undefined) request.limit = op.limit;
  if (op.revision !== undefined) request.revision = op.revision;
  if (op.maxCreateRevision !== undefined) request.max_create_revision = op.maxCreateRevision;
  if (op.orderByCreate) {
    request.sort_order = op.newestFirst ? SortOrder.Descend : SortOrder.Ascend;
    request.sort_target = SortTarget.Create;
  }
  return request;
}

const TARGETS = {
  create: [CompareTarget.Create, 'create_revision'],
  mod: [CompareTarget.Mod, 'mod_revision'],
  version: [CompareTarget.Version, 'version'],
  lease: [CompareTarget.Lease, 'lease'],
} as const;

const RESULTS = {
  '=': CompareResult.Equal,
  '!=': CompareResult.NotEqual,
  '<': CompareResult.Less,
  '>': CompareResult.Greater,
} as const;

function compareRequest({ target, field, op, operand }: Compare): ICompare {
  const [compareTarget, name] = TARGETS[field];
  return { ...keyRange(target), target: compareTarget, result: RESULTS[op], [name]: operand };
}

function opRequest(op: Op): IRequestOp {
  if (op.type === 'range') return { request_range: rangeRequest(op) };
  if (op.type === 'delete') return { request_delete_range: keyRange(op.target) };
  const put = { key: Buffer.from(op.key), value: toBuffer(op.value) };
  return { request_put: op.lease === undefined ? put : { ...put, lease: op.lease } };
}

export function txnRequest({ compares, success, failure = [] }: Txn): ITxnRequest {
  return { compare: compares.map(compareRequest), success: success.map(opRequest), failure: failure.map(opRequest) };
}

export function toHeader(header: IResponseHeader): Header {
  return { revision: Number(header.revision), clusterId: header.cluster_id, term: Number(header.raft_term) };
}

function toKeyValue(kv: IKeyValue): KeyValue {
  return {
    key: kv.key.toString(),
    value: kv.value.length === 0 ? NO_VALUE : kv.value,
    createRevision: Number(kv.create_revision),
    modRevision: Number(kv.mod_revision),
    version: Number(kv.version),
    lease: kv.lease,
  };
}

/** Where the page after `last` starts: the least key that is greater, also where it is no text. */
function keyAfter(last: Buffer): Buffer {
  return Buffer.concat([last, ZERO_BYTE]);
}

export function toRangeResult(response: IRangeResponse, { orderByCreate }: RangeOp): RangeResult {
  const { kvs } = response;
  const last = response.more && !orderByCreate ? kvs.at(-1) : undefined;
  const result = { kvs: kvs.map(toKeyValue), count: Number(response.count) };
  return last === undefined ? result : { ...result, next: keyAfter(last.key) };
}

function toOpResult(op: Op, response: IResponseOp): OpResult {
  if (op.type === 'put') return { type: 'put' };
  if (op.type === 'delete') return { type: 'delete', deleted: Number(response.response_delete_range.deleted) };
  return { type: 'range', ...toRangeResult(response.response_range, op) };
}

export function toTxnResult(txn: Txn, response: ITxnResponse): TxnResult {
  const ops = response.succeeded ? txn.success : (txn.failure ?? []);
  return {
    header: toHeader(response.header),
    succeeded: response.succeeded,
    results: ops.map((op, i) => toOpResult(op, response.responses[i] as IResponseOp)),
  };
}
