import test from 'ava';
import fc from 'fast-check';
import protobuf from 'protobufjs/minimal.js';
import type { WatchEvent } from '../../src/core/store.ts';
import { decodeWatchResponse, type WatchResponse } from '../../src/etcd/watch-response.ts';

const SAFE = { min: 0, max: Number.MAX_SAFE_INTEGER };
const revision = fc.integer(SAFE);

const event: fc.Arbitrary<WatchEvent> = fc.record({
  type: fc.constantFrom('put', 'delete'),
  kv: fc.record({
    key: fc.string({ unit: 'binary' }),
    value: fc.uint8Array({ maxLength: 300 }),
    createRevision: revision,
    modRevision: revision,
    version: revision,
    lease: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
  }),
});

const response: fc.Arbitrary<WatchResponse> = fc.record({
  watchId: revision,
  created: fc.boolean(),
  canceled: fc.boolean(),
  compactRevision: revision,
  cancelReason: fc.string(),
  events: fc.array(event, { maxLength: 5 }),
});

/** As etcd encodes it: fields of proto3 that are zero are left out. */
function encode(message: WatchResponse): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(10).fork().uint32(8).uint64(7).uint32(24).int64(42).ldelim();
  if (message.watchId) writer.uint32(16).int64(message.watchId);
  if (message.created) writer.uint32(24).bool(true);
  if (message.canceled) writer.uint32(32).bool(true);
  if (message.compactRevision) writer.uint32(40).int64(message.compactRevision);
  if (message.cancelReason) writer.uint32(50).string(message.cancelReason);
  for (const { type, kv } of message.events) {
    writer.uint32(90).fork();
    if (type === 'delete') writer.uint32(8).int32(1);
    writer.uint32(18).fork();
    writer.uint32(10).bytes(Buffer.from(kv.key));
    if (kv.createRevision) writer.uint32(16).int64(kv.createRevision);
    if (kv.modRevision) writer.uint32(24).int64(kv.modRevision);
    if (kv.version) writer.uint32(32).int64(kv.version);
    if (kv.value.length > 0) writer.uint32(42).bytes(kv.value);
    const lease = BigInt(kv.lease);
    if (lease) {
      const [low, high] = [Number(BigInt.asIntN(32, lease)), Number(BigInt.asIntN(32, lease >> 32n))];
      writer.uint32(48).int64({ low, high, unsigned: false });
    }
    writer.ldelim().ldelim();
  }
  // A field of a later release is passed over, whatever its kind.
  writer.uint32(8 * 1_000 + 2).bytes(Buffer.from('later'));
  return Buffer.from(writer.finish());
}

function plain(message: WatchResponse): object {
  const bare = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  return { ...message, events: message.events.map(({ type, kv }) => ({ type, ...kv, value: bare(kv.value) })) };
}

test('what a watch stream brings is read as it was written', (t) => {
  fc.assert(
    fc.property(response, (message) => {
      t.deepEqual(plain(decodeWatchResponse(encode(message))), plain(message));
    }),
  );
});

test('a key that is no UTF-8 is shown with U+FFFD, and a cut message is an error, not half a message', (t) => {
  const writer = protobuf.Writer.create();
  writer
    .uint32(90)
    .fork()
    .uint32(18)
    .fork()
    .uint32(10)
    .bytes(Buffer.from([0x2f, 0xff]))
    .ldelim()
    .ldelim();
  const bytes = Buffer.from(writer.finish());
  t.is(decodeWatchResponse(bytes).events[0]?.kv.key, '/\ufffd');
  t.throws(() => decodeWatchResponse(bytes.subarray(0, -1)));
});
