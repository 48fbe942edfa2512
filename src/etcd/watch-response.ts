/**
 * Decodes what a watch stream brings. etcd3's own decoder makes decimal text of each of a message's ten numbers and an object of
 * each part on the way; every watcher pays for that with every change, so here is one that reads off what is used.
 * Fields as in etcd's rpc.proto and kv.proto. Pure.
 */
import protobuf from 'protobufjs/minimal.js';
import type { KeyValue, WatchEvent } from '../core/store.ts';

export interface WatchResponse {
  readonly watchId: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** 0 unless history before it is gone and the watch therefore ends. */
  readonly compactRevision: number;
  readonly cancelReason: string;
  readonly events: readonly WatchEvent[];
}

type Reader = protobuf.Reader;

const NO_VALUE = new Uint8Array(0);
const NO_EVENTS: readonly WatchEvent[] = [];
/** A tag is a field's number and, in its last three bits, how it is encoded. */
const FIELD_SHIFT = 3;
const WIRE_TYPE_MASK = 7;
const TWO_32 = 2 ** 32;
const SMALL_BYTES = 7;
/** `EventType.DELETE`. */
const DELETE = 1;

export function decodeWatchResponse(bytes: Buffer): WatchResponse {
  const reader = protobuf.Reader.create(bytes);
  let watchId = 0;
  let created = false;
  let canceled = false;
  let compactRevision = 0;
  let cancelReason = '';
  let events: WatchEvent[] | undefined;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    switch (tag >>> FIELD_SHIFT) {
      case 2:
        watchId = int64(reader);
        break;
      case 3:
        created = reader.bool();
        break;
      case 4:
        canceled = reader.bool();
        break;
      case 5:
        compactRevision = int64(reader);
        break;
      case 6:
        cancelReason = reader.string();
        break;
      case 11:
        events ??= [];
        events.push(decodeEvent(reader));
        break;
      default:
        reader.skipType(tag & WIRE_TYPE_MASK);
    }
  }
  return { watchId, created, canceled, compactRevision, cancelReason, events: events ?? NO_EVENTS };
}

function decodeEvent(reader: Reader): WatchEvent {
  const end = endOf(reader);
  let isDelete = false;
  let kv: KeyValue | undefined;
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag >>> FIELD_SHIFT) {
      case 1:
        isDelete = reader.int32() === DELETE;
        break;
      case 2:
        kv = decodeKeyValue(reader);
        break;
      default:
        reader.skipType(tag & WIRE_TYPE_MASK);
    }
  }
  if (kv === undefined) throw new RangeError('an event without a key');
  return { type: isDelete ? 'delete' : 'put', kv };
}

function decodeKeyValue(reader: Reader): KeyValue {
  const end = endOf(reader);
  let key = '';
  let createRevision = 0;
  let modRevision = 0;
  let version = 0;
  let value: Uint8Array = NO_VALUE;
  let lease = '0';
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag >>> FIELD_SHIFT) {
      case 1:
        key = reader.string();
        break;
      case 2:
        createRevision = int64(reader);
        break;
      case 3:
        modRevision = int64(reader);
        break;
      case 4:
        version = int64(reader);
        break;
      case 5:
        value = reader.bytes();
        break;
      case 6:
        lease = int64Text(reader);
        break;
      default:
        reader.skipType(tag & WIRE_TYPE_MASK);
    }
  }
  return { key, value, createRevision, modRevision, version, lease };
}

function endOf(reader: Reader): number {
  const length = reader.uint32();
  return reader.pos + length;
}

/** Revisions, versions and ids of watches stay far below 2^53, and so take seven bytes at most; but -1 takes ten. */
function int64(reader: Reader): number {
  const { buf, pos, len } = reader;
  const end = Math.min(len, pos + SMALL_BYTES);
  let value = 0;
  let factor = 1;
  for (let at = pos; at < end; at += 1) {
    const byte = buf[at] as number;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) {
      reader.pos = at + 1;
      return value;
    }
    factor *= 0x80;
  }
  const { low, high } = reader.int64();
  return high * TWO_32 + (low >>> 0);
}

/** All 64 bits, which no number holds. */
function int64Text(reader: Reader): string {
  const { low, high } = reader.int64();
  return ((BigInt(high) << 32n) | BigInt(low >>> 0)).toString();
}
