import test from 'ava';
import { CompactedError, LeaseNotFoundError, StoreError, ValueTooLargeError } from '../../src/core/errors.ts';
import type { Compare, KeyValue, Op, Txn } from '../../src/core/store.ts';
import { CALL, connected, keys, memoryServer, put, Recorder, range, remove } from './harness.ts';

async function setUp() {
  const { clock, server } = memoryServer();
  return { clock, server, store: await connected(server) };
}

const putOp = (key: string, value = '', lease?: string): Op => ({ type: 'put', key, value, lease });
const deleteOp = (prefix: string): Op => ({ type: 'delete', target: { prefix } });
const txn = (success: readonly Op[], compares: readonly Compare[] = [], failure: readonly Op[] = []): Txn => ({
  compares,
  success,
  failure,
});
const text = (kv: KeyValue | undefined) => Buffer.from(kv?.value ?? []).toString();

test('a transaction that writes is one revision, one that changes nothing is none', async (t) => {
  const { store } = await setUp();
  t.is((await store.connect(CALL)).revision, 1);
  const made = await store.txn(txn([putOp('/a'), putOp('/b')]), CALL);
  t.is(made.header.revision, 2);
  t.is((await store.txn(txn([deleteOp('/x')]), CALL)).header.revision, 2);
  t.is((await store.txn(txn([deleteOp('/')]), CALL)).header.revision, 3);
});

test('a key keeps its create revision and counts its versions until it is deleted', async (t) => {
  const { store } = await setUp();
  await put(store, '/a', '1');
  await put(store, '/x');
  await put(store, '/a', '2');
  const [second] = (await range(store, { target: { key: '/a' } })).kvs;
  t.like(second, { createRevision: 2, modRevision: 4, version: 2, lease: '0' });
  t.is(text(second), '2');
  await remove(store, '/a');
  await put(store, '/a', '3');
  t.like((await range(store, { target: { key: '/a' } })).kvs[0], { createRevision: 6, modRevision: 6, version: 1 });
});

test('keys are in the order of their bytes', async (t) => {
  const { store } = await setUp();
  for (const key of ['/\u{1f600}', '/\uffee', '/b', '/B', '/a/', '/a']) await put(store, key);
  t.deepEqual(await keys(store, '/'), ['/B', '/a', '/a/', '/b', '/\uffee', '/\u{1f600}']);
});

test('a range comes in pages, which a past revision keeps consistent', async (t) => {
  const { store } = await setUp();
  for (const key of ['/a', '/a0', '/b', '/c']) await put(store, key);
  const first = await range(store, { target: { prefix: '/' }, limit: 2 });
  t.deepEqual([first.kvs.map((kv) => kv.key), first.count], [['/a', '/a0'], 4]);
  await remove(store, '/c');
  const { revision } = first.header;
  const second = await range(store, { target: { prefix: '/' }, limit: 2, from: first.next, revision });
  t.deepEqual([second.kvs.map((kv) => kv.key), second.count, second.next], [['/b', '/c'], 2, undefined]);
});

test('a range can leave out values, or keys as well, or be in order of creation', async (t) => {
  const { store } = await setUp();
  for (const key of ['/b', '/c', '/a']) await put(store, key, 'value');
  const ofAll = { target: { prefix: '/' } };
  t.deepEqual((await range(store, { ...ofAll, keysOnly: true })).kvs.map(text), ['', '', '']);
  t.like(await range(store, { ...ofAll, countOnly: true }), { kvs: [], count: 3 });
  const names = async (op: object) =>
    (await range(store, { ...ofAll, orderByCreate: true, ...op })).kvs.map((kv) => kv.key);
  t.deepEqual(await names({}), ['/b', '/c', '/a']);
  t.deepEqual(await names({ limit: 1, newestFirst: true, maxCreateRevision: 3 }), ['/c']);
});

test('a compare on a prefix must hold of every key there, and of an absent key where none is', async (t) => {
  const { store } = await setUp();
  const holds = async (compare: Compare) => (await store.txn(txn([], [compare]), CALL)).succeeded;
  const target = { prefix: '/a/' };
  for (const field of ['create', 'mod', 'version', 'lease'] as const) {
    t.true(await holds({ target, field, op: '=', operand: 0 }), field);
  }
  await put(store, '/a/1');
  await put(store, '/a/2');
  await put(store, '/a/2');
  t.false(await holds({ target, field: 'create', op: '=', operand: 0 }));
  t.true(await holds({ target, field: 'create', op: '>', operand: 0 }));
  t.true(await holds({ target, field: 'create', op: '<', operand: 4 }));
  t.false(await holds({ target, field: 'version', op: '=', operand: 1 }));
  t.true(await holds({ target: { key: '/a/1' }, field: 'version', op: '=', operand: 1 }));
  t.true(await holds({ target, field: 'lease', op: '!=', operand: '17' }));
});

test('operations of a transaction see what those before them did, compares see the state before', async (t) => {
  const { store } = await setUp();
  const read: Op = { type: 'range', target: { prefix: '/' }, keysOnly: true };
  await put(store, '/a');
  const absent: Compare = { target: { key: '/b' }, field: 'create', op: '=', operand: 0 };
  const { succeeded, results } = await store.txn(txn([read, putOp('/b'), read, deleteOp('/a'), read], [absent]), CALL);
  t.true(succeeded);
  t.deepEqual(
    results.flatMap((result) => (result.type === 'range' ? [result.kvs.map((kv) => kv.key)] : [])),
    [['/a'], ['/a', '/b'], ['/b']],
  );
  t.deepEqual((await store.txn(txn([], [absent], [deleteOp('/')]), CALL)).results, [{ type: 'delete', deleted: 1 }]);
});

test('a transaction may write a key once', async (t) => {
  const { store } = await setUp();
  for (const ops of [
    [putOp('/a'), putOp('/a')],
    [putOp('/a'), deleteOp('/')],
    [deleteOp('/'), putOp('/a')],
  ]) {
    await t.throwsAsync(store.txn(txn(ops), CALL), { instanceOf: StoreError });
    await t.throwsAsync(store.txn(txn([], [], ops), CALL), { instanceOf: StoreError }, 'also where it is not taken');
  }
  await t.notThrowsAsync(store.txn(txn([deleteOp('/'), deleteOp('/')]), CALL));
  await t.notThrowsAsync(store.txn(txn([putOp('/a')], [], [putOp('/a')]), CALL));
});

test('a transaction holds 128 operations, and as many compares', async (t) => {
  const { store } = await setUp();
  const ops = Array.from({ length: 129 }, (_, i) => putOp(`/${i}`));
  const compares = ops.map((_, i): Compare => ({ target: { key: `/${i}` }, field: 'mod', op: '=', operand: 0 }));
  await t.throwsAsync(store.txn(txn(ops), CALL), { instanceOf: StoreError });
  await t.throwsAsync(store.txn(txn([], [], ops), CALL), { instanceOf: StoreError });
  await t.throwsAsync(store.txn(txn([], compares), CALL), { instanceOf: StoreError });
  const full = await store.txn(txn(ops.slice(1), compares.slice(1), ops.slice(1)), CALL);
  t.is(full.results.length, 128);
});

test('a request holds 1.5 MiB', async (t) => {
  const { store } = await setUp();
  const half = 'x'.repeat(0.75 * 1024 * 1024);
  await t.throwsAsync(store.txn(txn([putOp('/a', half), putOp('/b', half)]), CALL), { instanceOf: ValueTooLargeError });
  await t.notThrowsAsync(store.txn(txn([putOp('/a', half), putOp('/b', half.slice(1_000))]), CALL));
});

test('a lease takes its keys with it, in one revision', async (t) => {
  const { clock, server, store } = await setUp();
  const revisions: string[][] = [];
  server.onCommit(({ events }) => revisions.push(events.map(({ type, kv }) => `${type} ${kv.key}`)));
  const { id, ttl } = await store.leaseGrant(1, CALL);
  t.is(ttl, 2, 'the floor');
  for (const key of ['/b', '/a', '/c']) await put(store, key, '', id);
  await put(store, '/c');
  t.deepEqual(await store.leaseTimeToLive(id, true, CALL), { ttl: 2, grantedTtl: 2, keys: ['/a', '/b'] });
  await clock.advance(1.5);
  t.deepEqual(await store.leaseTimeToLive(id, false, CALL), { ttl: 0, grantedTtl: 2, keys: [] });
  await clock.advance(0.5);
  t.deepEqual(revisions.slice(4), [['delete /a', 'delete /b']]);
  t.deepEqual(await store.leaseTimeToLive(id, true, CALL), { ttl: -1, grantedTtl: 0, keys: [] });
  await t.throwsAsync(put(store, '/d', '', id), { instanceOf: LeaseNotFoundError });
  await t.notThrowsAsync(store.leaseRevoke(id, CALL), 'there is no such lease any more');
  t.is((await store.connect(CALL)).revision, 6);
});

test('a put moves its key to another lease, a delete takes it off', async (t) => {
  const { store } = await setUp();
  const [one, two] = [(await store.leaseGrant(5, CALL)).id, (await store.leaseGrant(5, CALL)).id];
  await put(store, '/a', '', one);
  await put(store, '/b', '', one);
  await put(store, '/a', '', two);
  await remove(store, '/b');
  await put(store, '/b');
  await store.leaseRevoke(one, CALL);
  t.deepEqual(await keys(store, '/'), ['/a', '/b']);
  await store.leaseRevoke(two, CALL);
  t.deepEqual(await keys(store, '/'), ['/b']);
});

test('a lease in the branch that is not taken need not exist', async (t) => {
  const { store } = await setUp();
  await t.notThrowsAsync(store.txn(txn([], [], [putOp('/a', '', '17')]), CALL));
  await t.throwsAsync(store.txn(txn([putOp('/b'), putOp('/a', '', '17')]), CALL), { instanceOf: LeaseNotFoundError });
  t.deepEqual(await keys(store, '/'), [], 'a refused transaction leaves nothing');
});

test('a lease lives as long as it is kept alive, and makes no revision by that', async (t) => {
  const { clock, store } = await setUp();
  const { id } = await store.leaseGrant(3, CALL);
  await put(store, '/a', '', id);
  const alive: [string, number][] = [];
  const stream = store.openKeepAlive({ onAlive: (...args) => alive.push(args), onEnd: () => t.fail() });
  for (let i = 0; i < 5; i++) {
    await clock.advance(2);
    stream.send(id);
  }
  stream.send('17');
  await clock.advance(2);
  t.is((await store.connect(CALL)).revision, 2);
  t.deepEqual(alive, [...Array(5).fill([id, 3]), ['17', 0]]);
  await clock.advance(1);
  t.deepEqual(await keys(store, '/'), []);
});

test('a lease of years arms no timer that fires at once', async (t) => {
  const { clock, store } = await setUp();
  const { id } = await store.leaseGrant(9_000_000_000, CALL);
  await put(store, '/a', '', id);
  await clock.advance(60 * 86_400);
  t.deepEqual(await keys(store, '/'), ['/a']);
  await t.throwsAsync(store.leaseGrant(9_000_000_001, CALL), { instanceOf: StoreError });
});

test('a watch tells the past from its start on, then the present, a revision whole at a time', async (t) => {
  const { clock, store } = await setUp();
  const heard = new Recorder();
  const stream = store.openWatch(heard);
  await put(store, '/a');
  await store.txn(txn([putOp('/a'), putOp('/other'), putOp('/b')]), CALL);
  await put(store, '/other');
  stream.create(1, { target: { prefix: '/' }, startRevision: 3 });
  stream.create(2, { target: { key: '/a' }, startRevision: 6 });
  await clock.advance(0);
  await store.txn(txn([deleteOp('/a'), putOp('/c')]), CALL);
  await put(store, '/a');
  await clock.advance(0);
  t.deepEqual(heard.said, [
    'created 1',
    '1: +/a@3 +/other@3 +/b@3 +/other@4',
    'created 2',
    '1: -/a@5 +/c@5',
    '1: +/a@6',
    '2: +/a@6',
  ]);
  stream.cancel(1);
  stream.create(1, { target: { key: '/b' }, startRevision: 0 });
  await put(store, '/a');
  await put(store, '/b');
  await clock.advance(0);
  t.deepEqual(heard.said.slice(6), ['created 1', '2: +/a@7', '1: +/b@8']);
  stream.close();
  await put(store, '/a');
  await clock.advance(0);
  t.is(heard.said.length, 9);
});

test('what a watch is told of a deletion is the key and the revision', async (t) => {
  const { clock, server, store } = await setUp();
  const events: unknown[] = [];
  server.onCommit((commit) => events.push(...commit.events));
  await put(store, '/a', 'x');
  await remove(store, '/a');
  await clock.advance(0);
  const kv = { key: '/a', value: new Uint8Array(), createRevision: 0, modRevision: 3, version: 0, lease: '0' };
  t.deepEqual(events[1], { type: 'delete', kv });
});

test('a compaction takes the past from ranges and from watches that start there, and leaves running watches alone', async (t) => {
  const { clock, server, store } = await setUp();
  for (const value of ['2', '3', '4', '5']) await put(store, '/a', value);
  const heard = new Recorder();
  const stream = store.openWatch(heard);
  stream.create(1, { target: { key: '/a' }, startRevision: 5 });
  await clock.advance(0);
  server.compact(4);
  stream.create(2, { target: { key: '/a' }, startRevision: 3 });
  stream.create(3, { target: { key: '/a' }, startRevision: 4 });
  await put(store, '/a', '6');
  await clock.advance(0);
  t.deepEqual(heard.said, [
    'created 1',
    '1: +/a@5',
    'created 2',
    'canceled 2 CompactedError',
    'created 3',
    '3: +/a@4 +/a@5',
    '1: +/a@6',
    '3: +/a@6',
  ]);
  t.is((heard.errors[0] as CompactedError).compactRevision, 4);
  const at = (revision: number) => range(store, { target: { key: '/a' }, revision });
  await t.throwsAsync(at(3), { instanceOf: CompactedError });
  t.is(text((await at(4)).kvs[0]), '4');
  t.is(text((await at(5)).kvs[0]), '5');
  await t.throwsAsync(at(7), { instanceOf: StoreError });
  t.throws(() => server.compact(4), { instanceOf: CompactedError });
  t.throws(() => server.compact(7), { instanceOf: StoreError });
  await t.throwsAsync(store.txn(txn([putOp('/b'), { type: 'range', target: { key: '/a' }, revision: 3 }]), CALL), {
    instanceOf: CompactedError,
  });
  t.deepEqual(await keys(store, '/b'), []);
});

for (const dropsDeletesAtCompaction of [false, true]) {
  const outcome = dropsDeletesAtCompaction ? 'lost, as by an older etcd' : 'told';
  test(`a deletion at the very revision of a compaction is ${outcome}`, async (t) => {
    const { clock, server } = memoryServer({ dropsDeletesAtCompaction });
    const store = await connected(server);
    await put(store, '/a');
    await remove(store, '/a');
    server.compact();
    const heard = new Recorder();
    store.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 3 });
    await clock.advance(0);
    t.deepEqual(heard.said, dropsDeletesAtCompaction ? ['created 1'] : ['created 1', '1: -/a@3']);
  });
}

test('messages may be delayed and overtake each other, except within a stream', async (t) => {
  const delays = [50, 10, 400, 5, 200, 90, 1, 30];
  let turn = 0;
  const delayMs = () => delays[turn++ % delays.length] as number;
  const { clock, server } = memoryServer({ delayMs });
  const store = server.client();
  const connecting = store.connect(CALL);
  await clock.advance(1);
  await connecting;
  const heard = new Recorder();
  store.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 1 });
  await clock.advance(1);
  const order: string[] = [];
  for (const key of ['/a', '/b', '/c', '/d', '/e']) put(store, key).then(() => order.push(key), t.fail);
  await clock.advance(2);
  const committed = server.model.since(2).map(({ revision, events }) => `1: +${events[0]?.kv.key}@${revision}`);
  t.is(committed.length, 5);
  t.notDeepEqual(order, ['/a', '/b', '/c', '/d', '/e']);
  t.deepEqual(heard.said, ['created 1', ...committed]);
});

test('a value is kept as it was when it was handed in', async (t) => {
  const { store } = await setUp();
  const value = new Uint8Array([1, 0xff, 0]);
  await store.txn(txn([{ type: 'put', key: '/a', value }]), CALL);
  value[0] = 9;
  t.deepEqual((await range(store, { target: { key: '/a' } })).kvs[0]?.value, new Uint8Array([1, 0xff, 0]));
});
