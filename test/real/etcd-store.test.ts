import test from 'ava';
import {
  CompactedError,
  ConnectionError,
  InvalidOptionError,
  LeaseNotFoundError,
  NoSpaceError,
  StoreError,
  ValueTooLargeError,
} from '../../src/core/errors.ts';
import type { Compare, KeyValue, Op, TxnResult } from '../../src/core/store.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { KeepAliveRecorder, WatchRecorder } from '../support/recorder.ts';

const CALL = { timeoutMs: 10_000 };

let etcd: EtcdProcess;
let store: EtcdStore;
let prefixes = 0;

test.before(async () => {
  etcd = await startEtcd();
  store = new EtcdStore({ hosts: etcd.endpoint });
  await store.connect(CALL);
});

test.after.always(async () => {
  store?.close();
  await etcd?.destroy();
});

/** Keys of one test alone. */
function ownPrefix(): string {
  prefixes += 1;
  return `/t${prefixes}/`;
}

function put(key: string, value: string | Uint8Array = '', lease?: string): Promise<TxnResult> {
  return store.txn({ compares: [], success: [{ type: 'put', key, value, lease }] }, CALL);
}

function remove(key: string): Promise<TxnResult> {
  return store.txn({ compares: [], success: [{ type: 'delete', target: { key } }] }, CALL);
}

const keysOf = (kvs: readonly KeyValue[]) => kvs.map((kv) => kv.key);

test('a range gives keys in order, with value, revisions, version and lease', async (t) => {
  const prefix = ownPrefix();
  const lease = await store.leaseGrant(60, CALL);
  const first = await put(`${prefix}b`, 'B', lease.id);
  await put(`${prefix}a`, 'A');
  const again = await put(`${prefix}b`, new Uint8Array([0, 255, 128]), lease.id);
  const { kvs, count, next, header } = await store.range({ type: 'range', target: { prefix } }, CALL);
  t.deepEqual(keysOf(kvs), [`${prefix}a`, `${prefix}b`]);
  t.is(count, 2);
  t.is(next, undefined);
  t.true(header.revision >= again.header.revision);
  const b = kvs[1] as KeyValue;
  t.deepEqual([...b.value], [0, 255, 128]);
  t.is(b.createRevision, first.header.revision);
  t.is(b.modRevision, again.header.revision);
  t.is(b.version, 2);
  t.is(b.lease, lease.id);
  t.is(kvs[0]?.lease, '0');
});

test('a range of one key does not give those that it begins', async (t) => {
  const prefix = ownPrefix();
  await put(prefix);
  await put(`${prefix}a`);
  t.deepEqual(keysOf((await store.range({ type: 'range', target: { key: prefix } }, CALL)).kvs), [prefix]);
});

test('the empty prefix is every key', async (t) => {
  const key = ownPrefix();
  await put(key);
  const { kvs, count } = await store.range({ type: 'range', target: { prefix: '' }, keysOnly: true }, CALL);
  t.true(keysOf(kvs).includes(key));
  t.is(count, kvs.length);
});

test('a range can be of keys only, or of their number only', async (t) => {
  const prefix = ownPrefix();
  await put(`${prefix}a`, 'A');
  const keys = await store.range({ type: 'range', target: { prefix }, keysOnly: true }, CALL);
  t.is(keys.kvs[0]?.value.length, 0);
  const count = await store.range({ type: 'range', target: { prefix }, countOnly: true }, CALL);
  t.is(count.count, 1);
  t.deepEqual(count.kvs, []);
});

test('a range reads the past', async (t) => {
  const key = ownPrefix();
  const { header } = await put(key, 'old');
  await put(key, 'new');
  const { kvs } = await store.range({ type: 'range', target: { key }, revision: header.revision }, CALL);
  t.is(String(kvs[0]?.value), 'old');
});

test('a range is ordered by creation when asked', async (t) => {
  const prefix = ownPrefix();
  for (const name of ['c', 'a', 'b', 'c']) await put(prefix + name);
  const { kvs } = await store.range({ type: 'range', target: { prefix }, orderByCreate: true, limit: 2 }, CALL);
  t.deepEqual(keysOf(kvs), [`${prefix}c`, `${prefix}a`]);
});

test('a range finds the newest of the keys that were created up to a revision', async (t) => {
  const prefix = ownPrefix();
  await put(`${prefix}c`);
  const { header } = await put(`${prefix}a`);
  await put(`${prefix}b`);
  const maxCreateRevision = header.revision;
  const target = { prefix };
  const op = { type: 'range', target, orderByCreate: true, newestFirst: true, maxCreateRevision, limit: 1 } as const;
  t.deepEqual(keysOf((await store.range(op, CALL)).kvs), [`${prefix}a`]);
});

test('pages meet without gap or overlap, also at keys that are not text', async (t) => {
  const prefix = ownPrefix();
  await put(`${prefix}a`);
  await put(`${prefix}z`);
  // JSON carries keys as base64, so that any byte can be in them.
  for (const byte of [0x80, 0xc3, 0xff]) {
    const key = Buffer.concat([Buffer.from(prefix), Buffer.from([byte])]).toString('base64');
    const response = await fetch(`${etcd.endpoint}/v3/kv/put`, {
      method: 'POST',
      body: JSON.stringify({ key, value: '' }),
    });
    t.true(response.ok);
  }
  const keys: string[] = [];
  let from: Uint8Array | undefined;
  do {
    const page = await store.range({ type: 'range', target: { prefix }, limit: 1, from }, CALL);
    t.is(page.kvs.length, 1);
    keys.push(...keysOf(page.kvs));
    from = page.next;
  } while (from !== undefined);
  t.deepEqual(
    keys,
    ['a', 'z', '\ufffd', '\ufffd', '\ufffd'].map((name) => prefix + name),
  );
});

test('a transaction whose comparisons hold does the one, else the other', async (t) => {
  const key = ownPrefix();
  const txn = {
    compares: [{ target: { key }, field: 'create', op: '=', operand: 0 }] as const,
    success: [{ type: 'put', key, value: 'mine' }] as const,
    failure: [{ type: 'range', target: { key } }] as const,
  };
  const first = await store.txn(txn, CALL);
  t.true(first.succeeded);
  t.deepEqual(first.results, [{ type: 'put' }]);
  const second = await store.txn(txn, CALL);
  t.false(second.succeeded);
  const [result] = second.results;
  t.is(result?.type === 'range' && String(result.kvs[0]?.value), 'mine');
  t.is(second.header.clusterId, first.header.clusterId);
});

test('each comparison is answered as etcd compares', async (t) => {
  const key = ownPrefix();
  const lease = await store.leaseGrant(60, CALL);
  const { header } = await put(key, 'x', lease.id);
  const { revision } = header;
  const holds = async (field: Compare['field'], op: Compare['op'], operand: number | string, name = key) =>
    (await store.txn({ compares: [{ target: { key: name }, field, op, operand }], success: [] }, CALL)).succeeded;
  t.true(await holds('create', '=', revision));
  t.true(await holds('mod', '<', revision + 1));
  t.false(await holds('mod', '<', revision));
  t.true(await holds('mod', '>', revision - 1));
  t.true(await holds('version', '=', 1));
  t.true(await holds('version', '!=', 2));
  t.true(await holds('lease', '=', lease.id));
  t.false(await holds('lease', '=', '0'));
  const absent = `${key}absent`;
  t.true(await holds('create', '=', 0, absent));
  t.true(await holds('version', '=', 0, absent));
  t.true(await holds('lease', '=', '0', absent));
});

test('a comparison with a prefix is of every key under it', async (t) => {
  const prefix = ownPrefix();
  const empty = { target: { prefix }, field: 'create', op: '=', operand: 0 } as const;
  t.true((await store.txn({ compares: [empty], success: [] }, CALL)).succeeded);
  await put(`${prefix}a`);
  t.false((await store.txn({ compares: [empty], success: [] }, CALL)).succeeded);
});

test('a delete says how many keys went', async (t) => {
  const prefix = ownPrefix();
  for (const name of ['a', 'b', 'c']) await put(prefix + name);
  const success: Op[] = [
    { type: 'delete', target: { key: `${prefix}a` } },
    { type: 'delete', target: { prefix: `${prefix}x` } },
  ];
  const { results } = await store.txn({ compares: [], success }, CALL);
  t.deepEqual(results, [
    { type: 'delete', deleted: 1 },
    { type: 'delete', deleted: 0 },
  ]);
  const rest = await store.txn({ compares: [], success: [{ type: 'delete', target: { prefix } }] }, CALL);
  t.deepEqual(rest.results, [{ type: 'delete', deleted: 2 }]);
});

test('a lease holds its keys, and takes them with it', async (t) => {
  const key = ownPrefix();
  const lease = await store.leaseGrant(60, CALL);
  t.is(lease.ttl, 60);
  await put(key, '', lease.id);
  const status = await store.leaseTimeToLive(lease.id, true, CALL);
  t.true(status.ttl > 0 && status.ttl <= 60);
  t.is(status.grantedTtl, 60);
  t.deepEqual(status.keys, [key]);
  t.deepEqual((await store.leaseTimeToLive(lease.id, false, CALL)).keys, []);
  await store.leaseRevoke(lease.id, CALL);
  t.is((await store.range({ type: 'range', target: { key } }, CALL)).count, 0);
  await store.leaseRevoke(lease.id, CALL);
  t.deepEqual(await store.leaseTimeToLive(lease.id, true, CALL), { ttl: -1, grantedTtl: 0, keys: [] });
  await t.throwsAsync(put(key, '', lease.id), { instanceOf: LeaseNotFoundError });
});

test('a ttl below the floor of the server is raised, and said so', async (t) => {
  t.true((await store.leaseGrant(1, CALL)).ttl >= 1);
});

test('a keepalive says for how long; of a lost lease it says 0', async (t) => {
  const lease = await store.leaseGrant(60, CALL);
  const gone = await store.leaseGrant(60, CALL);
  await store.leaseRevoke(gone.id, CALL);
  const recorder = new KeepAliveRecorder();
  const stream = store.openKeepAlive(recorder);
  stream.send(gone.id);
  stream.send(lease.id);
  t.deepEqual(await recorder.untilAlive(gone.id), [gone.id, 0]);
  t.deepEqual(await recorder.untilAlive(lease.id), [lease.id, 60]);
  stream.close();
  stream.send(lease.id);
  t.deepEqual(recorder.ends, []);
});

test('watches on one stream each get their own events, under the ids of the caller', async (t) => {
  const prefix = ownPrefix();
  const { header } = await put(`${prefix}a/1`);
  const startRevision = header.revision + 1;
  const recorder = new WatchRecorder();
  const stream = store.openWatch(recorder);
  stream.create(70, { target: { prefix: `${prefix}a/` }, startRevision });
  stream.create(0, { target: { key: `${prefix}b` }, startRevision });
  await recorder.untilCreated(0);
  t.deepEqual(recorder.created, [70, 0]);
  const { header: firstB } = await put(`${prefix}b`);
  await put(`${prefix}bb`);
  const { header: secondB } = await put(`${prefix}b`);
  const { header: putTime } = await put(`${prefix}a/2`, 'v');
  const { header: deleteTime } = await remove(`${prefix}a/2`);
  t.deepEqual(await recorder.untilEvents(70, 2), [
    `put ${prefix}a/2@${putTime.revision}`,
    `delete ${prefix}a/2@${deleteTime.revision}`,
  ]);
  t.is(String(recorder.of(70)[0]?.kv.value), 'v');
  t.deepEqual(await recorder.untilEvents(0, 2), [
    `put ${prefix}b@${firstB.revision}`,
    `put ${prefix}b@${secondB.revision}`,
  ]);
  stream.close();
});

test('a watch starts in the past, and tells a revision as a whole', async (t) => {
  const prefix = ownPrefix();
  const { header } = await put(`${prefix}a`);
  const success: Op[] = ['b', 'c', 'd'].map((name) => ({ type: 'put', key: prefix + name, value: '' }));
  const batch = await store.txn({ compares: [], success }, CALL);
  const recorder = new WatchRecorder();
  const sizes: number[] = [];
  const stream = store.openWatch({
    onCreated: (id) => recorder.onCreated(id),
    onEvents: (id, events) => {
      sizes.push(events.filter((event) => event.kv.modRevision === batch.header.revision).length);
      recorder.onEvents(id, events);
    },
    onCanceled: () => {},
    onEnd: () => {},
  });
  stream.create(1, { target: { prefix }, startRevision: header.revision });
  t.is((await recorder.untilEvents(1, 4)).length, 4);
  t.deepEqual(sizes.filter(Boolean), [3]);
  stream.close();
});

test('a cancelled watch is silent, and its id can be used again at once', async (t) => {
  const prefix = ownPrefix();
  const { header } = await put(`${prefix}a`);
  const recorder = new WatchRecorder();
  const stream = store.openWatch(recorder);
  const startRevision = header.revision;
  stream.create(1, { target: { key: `${prefix}a` }, startRevision });
  stream.cancel(1);
  stream.create(1, { target: { key: `${prefix}b` }, startRevision });
  stream.create(2, { target: { prefix }, startRevision });
  await recorder.untilCreated(2);
  await put(`${prefix}a`);
  await put(`${prefix}b`);
  await recorder.untilEvents(2, 3);
  await recorder.untilEvents(1, 1);
  t.deepEqual(new Set(recorder.of(1).map((event) => event.kv.key)), new Set([`${prefix}b`]));
  t.deepEqual(recorder.created, [1, 2]);
  t.is(recorder.canceled.size, 0);
  stream.cancel(99);
  stream.close();
});

test('a watch and a range of what is compacted say so, and other watches go on', async (t) => {
  const own = await startEtcd();
  t.teardown(() => own.destroy());
  const client = new EtcdStore({ hosts: own.endpoint });
  t.teardown(() => client.close());
  await client.connect(CALL);
  for (let i = 0; i < 10; i++) await etcdctl(own.endpoint, 'put', '/k', String(i));
  await etcdctl(own.endpoint, 'compact', '8');
  const recorder = new WatchRecorder();
  const stream = client.openWatch(recorder);
  stream.create(1, { target: { key: '/k' }, startRevision: 3 });
  stream.create(2, { target: { key: '/k' }, startRevision: 9 });
  const error = await recorder.untilCanceled(1);
  t.true(error instanceof CompactedError);
  t.is((error as CompactedError).compactRevision, 8);
  await recorder.untilEvents(2, 3);
  t.deepEqual(recorder.ends, []);
  await t.throwsAsync(client.range({ type: 'range', target: { key: '/k' }, revision: 3 }, CALL), {
    instanceOf: CompactedError,
  });
  t.is((await client.range({ type: 'range', target: { key: '/k' }, revision: 8 }, CALL)).count, 1);
});

test('what etcd refuses has a name of its own', async (t) => {
  const key = ownPrefix();
  await t.throwsAsync(put(key, 'x'.repeat(2_000_000)), {
    instanceOf: ValueTooLargeError,
    message: /max-request-bytes/,
  });
  const twice: Op[] = [
    { type: 'put', key, value: '1' },
    { type: 'put', key, value: '2' },
  ];
  await t.throwsAsync(store.txn({ compares: [], success: twice }, CALL), {
    instanceOf: StoreError,
    message: /duplicate key/,
  });
  t.is((await store.range({ type: 'range', target: { key } }, CALL)).count, 0);
});

test('a full store refuses what puts, and lets delete', async (t) => {
  const own = await startEtcd({ quotaBytes: 16 * 1024 * 1024 });
  t.teardown(() => own.destroy());
  const client = new EtcdStore({ hosts: own.endpoint });
  t.teardown(() => client.close());
  await client.connect(CALL);
  const fill = async () => {
    for (let i = 0; i < 40; i++) {
      await client.txn({ compares: [], success: [{ type: 'put', key: `/k${i}`, value: 'x'.repeat(1_000_000) }] }, CALL);
    }
  };
  await t.throwsAsync(fill(), { instanceOf: NoSpaceError, message: /compact/ });
  const { results } = await client.txn({ compares: [], success: [{ type: 'delete', target: { key: '/k0' } }] }, CALL);
  t.deepEqual(results, [{ type: 'delete', deleted: 1 }]);
});

test('options that cannot work are refused at once', (t) => {
  for (const hosts of [[], '', 'ftp://x', 'http://a:1,http://b:2', 'http://a/path', ['http://a', 'https://b']]) {
    t.throws(() => new EtcdStore({ hosts }), { instanceOf: InvalidOptionError }, JSON.stringify(hosts));
  }
  const error = t.throws(() => new EtcdStore({ hosts: 'http://root:secret@a' }), { instanceOf: InvalidOptionError });
  t.false(error?.message.includes('secret'));
  const rootCertificate = Buffer.from('no certificate');
  t.throws(() => new EtcdStore({ hosts: 'https://a', credentials: { rootCertificate } }), {
    instanceOf: InvalidOptionError,
  });
});

test('without a connection calls reject and streams end', async (t) => {
  const idle = new EtcdStore({ hosts: etcd.endpoint });
  await t.throwsAsync(idle.range({ type: 'range', target: { key: '/' } }, CALL), { instanceOf: ConnectionError });
  const watch = new WatchRecorder();
  idle.openWatch(watch).create(1, { target: { key: '/' }, startRevision: 1 });
  t.true((await watch.untilEnd()) instanceof ConnectionError);
  const keepAlive = new KeepAliveRecorder();
  idle.openKeepAlive(keepAlive).send('1');
  t.true((await keepAlive.untilEnd()) instanceof ConnectionError);
});
