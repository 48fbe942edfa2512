import test from 'ava';
import { ConnectionError, LeaseNotFoundError, NoSpaceError } from '../../src/core/errors.ts';
import { CALL, connected, keys, memoryServer, put, Recorder, range, remove } from './harness.ts';

test('a partitioned client is told nothing, and its calls time out by the clock', async (t) => {
  const { clock, server } = memoryServer();
  const [near, far] = [await connected(server), await connected(server)];
  const heard = new Recorder();
  far.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 1 });
  await clock.advance(0);
  server.partition(far);
  let outcome: unknown = 'none';
  put(far, '/far').catch((error) => {
    outcome = error;
  });
  await put(near, '/near');
  await clock.advance(0.999);
  t.is(outcome, 'none');
  await clock.advance(0.001);
  t.true(outcome instanceof ConnectionError);
  t.deepEqual(heard.said, ['created 1']);

  server.heal(far);
  await clock.advance(0);
  t.deepEqual(heard.said, ['created 1', '1: +/near@2'], 'what was held back arrives');
  t.deepEqual(await keys(near, '/'), ['/near'], 'the call that timed out was never done');
});

test('a call that waits out a short partition is done', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  server.partition(client);
  const pending = put(client, '/a');
  await clock.advance(0.5);
  server.heal();
  t.is((await pending).header.revision, 2);
});

test('after a partition streams may be broken, with or without a word', async (t) => {
  const { clock, server } = memoryServer();
  for (const [fate, said] of [
    ['end', ['created 1', 'end ConnectionError']],
    ['silent', ['created 1']],
  ] as const) {
    const client = await connected(server);
    const heard = new Recorder();
    client.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 0 });
    await clock.advance(0);
    server.partition(client);
    await put(await connected(server), '/a');
    server.heal(client, fate);
    await clock.advance(10);
    t.deepEqual(heard.said, said);
    await client.connect(CALL);
    t.deepEqual(await keys(client, '/'), ['/a'], 'a call on a new connection goes through');
  }
});

test('a restart behind a partition is heard of when it is healed', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const heard = new Recorder();
  client.openWatch(heard);
  await clock.advance(0);
  server.partition(client);
  server.restart();
  await clock.advance(1);
  t.deepEqual(heard.said, []);
  server.heal();
  await clock.advance(0);
  t.deepEqual(heard.said, ['end ConnectionError']);
});

test('a crashed client sends nothing more, its calls never settle and its streams die silently', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const other = await connected(server);
  const heard = new Recorder();
  const alive: number[] = [];
  client.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 1 });
  const { id } = await client.leaseGrant(2, CALL);
  await put(client, '/a', '', id);
  const stream = client.openKeepAlive({ onAlive: (_, ttl) => alive.push(ttl), onEnd: () => t.fail() });
  await clock.advance(0);
  heard.said.length = 0;

  server.crash(client);
  let settled = false;
  const done = () => {
    settled = true;
  };
  put(client, '/b').then(done, done);
  client.connect(CALL).then(done, done);
  stream.send(id);
  await clock.advance(1.999);
  t.deepEqual(await keys(other, '/'), ['/a']);
  await clock.advance(0.001);
  t.deepEqual(await keys(other, '/'), [], 'its lease has run out');
  await clock.advance(100);
  t.false(settled);
  t.deepEqual(heard.said, []);
  t.deepEqual(alive, []);
});

test('what a client had sent before it crashed is done', async (t) => {
  let delayMs = 0;
  const { clock, server } = memoryServer({ delayMs: () => delayMs });
  const client = await connected(server);
  delayMs = 100;
  void put(client, '/a');
  server.crash(client);
  await clock.advance(1);
  t.is(server.model.header.revision, 2);
});

test('a restart ends all streams, raises the term, and gives every lease its whole ttl and an election timeout', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const heard = new Recorder();
  const ends: string[] = [];
  client.openWatch(heard);
  client.openKeepAlive({ onAlive: () => t.fail(), onEnd: (error) => ends.push(error.name) });
  const { id } = await client.leaseGrant(5, CALL);
  await put(client, '/a', '', id);
  const { term } = await client.connect(CALL);
  client.openWatch(heard);
  client.openKeepAlive({ onAlive: () => t.fail(), onEnd: (error) => ends.push(error.name) });
  await clock.advance(4);
  server.restart();
  await clock.advance(0);
  t.deepEqual(heard.said, ['end ConnectionError'], 'connect() dropped the first stream without a word');
  t.deepEqual(ends, ['ConnectionError']);
  t.is((await client.connect(CALL)).term, term + 1);
  await clock.advance(5.999);
  t.deepEqual(await keys(client, '/'), ['/a']);
  await clock.advance(0.001);
  t.deepEqual(await keys(client, '/'), []);
});

test('a stopped server refuses calls and streams at once and lets no lease expire', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const { id } = await client.leaseGrant(2, CALL);
  await put(client, '/a', '', id);
  server.stop();
  await t.throwsAsync(put(client, '/b'), { instanceOf: ConnectionError });
  await t.throwsAsync(client.connect(CALL), { instanceOf: ConnectionError });
  const heard = new Recorder();
  client.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 1 });
  await clock.advance(100);
  t.deepEqual(heard.said, ['end ConnectionError']);
  server.start();
  await client.connect(CALL);
  t.deepEqual(await keys(client, '/'), ['/a']);
});

test('a write whose answer is lost was done, one whose request is lost was not', async (t) => {
  const { server } = memoryServer();
  const client = await connected(server);
  server.loseReplies(client);
  await t.throwsAsync(put(client, '/a'), { instanceOf: ConnectionError });
  server.loseRequests(client);
  await t.throwsAsync(put(client, '/b'), { instanceOf: ConnectionError });
  await put(client, '/c');
  t.deepEqual(await keys(client, '/'), ['/a', '/c']);
  server.loseReplies(client);
  t.deepEqual(await keys(client, '/'), ['/a', '/c'], 'reads are not concerned');
});

test('a frozen member does a write late, over what was written through another one since', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  await put(client, '/a', '1');
  server.freeze(client);
  const late = t.throwsAsync(put(client, '/a', '2'), { instanceOf: ConnectionError });
  await clock.advance(1);
  await late;
  await client.connect(CALL);
  await put(client, '/a', '3');
  server.thaw(client);
  await clock.advance(0);
  const [kv] = (await range(client, { target: { key: '/a' } })).kvs;
  t.is(Buffer.from(kv?.value ?? []).toString(), '2');
  t.is(kv?.version, 3);
});

test('a restart loses what a frozen member had not done', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  server.freeze(client);
  const lost = t.throwsAsync(put(client, '/a'), { instanceOf: ConnectionError });
  await clock.advance(0.1);
  server.restart();
  await clock.advance(0);
  await lost;
  server.thaw(client);
  await clock.advance(10);
  await client.connect(CALL);
  t.deepEqual(await keys(client, '/'), []);
});

test('a restore brings back data, revision and leases, keeps the cluster id, and lowers the term', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const { id } = await client.leaseGrant(2, CALL);
  await put(client, '/a', '', id);
  const before = await client.connect(CALL);
  const snapshot = server.snapshot();
  await clock.advance(2);
  await put(client, '/b');
  const heard = new Recorder();
  client.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 5 });
  await clock.advance(0);
  server.restore(snapshot);
  await clock.advance(0);
  t.deepEqual(heard.said, ['created 1', 'end ConnectionError']);
  const after = await client.connect(CALL);
  t.is(after.revision, before.revision);
  t.is(after.clusterId, before.clusterId);
  t.true(after.term < before.term);
  t.deepEqual(await keys(client, '/'), ['/a']);

  const ahead = new Recorder();
  client.openWatch(ahead).create(1, { target: { prefix: '/' }, startRevision: 5 });
  for (const key of ['/c', '/d', '/e']) await put(client, key);
  await clock.advance(0);
  t.deepEqual(
    ahead.said,
    ['created 1', '1: +/e@5'],
    'a watch from beyond the restored revision says nothing until it is reached',
  );
  await clock.advance(3);
  t.deepEqual(await keys(client, '/'), ['/c', '/d', '/e'], 'the lease was armed again');
  server.restore(snapshot);
  await client.connect(CALL);
  t.deepEqual(await keys(client, '/'), ['/a'], 'a snapshot can be used twice');
});

test('after a wipe another, empty cluster answers', async (t) => {
  const { server } = memoryServer();
  const client = await connected(server);
  await put(client, '/a');
  const before = await client.connect(CALL);
  server.wipe();
  const after = await client.connect(CALL);
  t.not(after.clusterId, before.clusterId);
  t.is(after.revision, 1);
  t.deepEqual(await keys(client, ''), []);
});

test('a full store refuses puts and new leases, and lets go of what there is', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const { id } = await client.leaseGrant(2, CALL);
  await put(client, '/a', '', id);
  await put(client, '/b');
  server.noSpace = true;
  await t.throwsAsync(put(client, '/c'), { instanceOf: NoSpaceError });
  await t.throwsAsync(client.leaseGrant(2, CALL), { instanceOf: NoSpaceError });
  const untaken = {
    compares: [{ target: { key: '/b' }, field: 'version', op: '=', operand: 1 }],
    success: [{ type: 'delete', target: { key: '/b' } }],
    failure: [{ type: 'put', key: '/b', value: '' }],
  } as const;
  await t.throwsAsync(client.txn(untaken, CALL), { instanceOf: NoSpaceError }, 'also in the branch that is not taken');
  t.is((await remove(client, '/b')).header.revision, 4);
  await clock.advance(2);
  t.deepEqual(await keys(client, '/'), []);
  server.noSpace = false;
  await t.throwsAsync(put(client, '/c', '', id), { instanceOf: LeaseNotFoundError });
  t.true((await put(client, '/c')).succeeded);
});

test('a cut ends streams and calls of that client alone, who hears of it at once, also behind a partition', async (t) => {
  const { clock, server } = memoryServer();
  const [one, two] = [await connected(server), await connected(server)];
  const [heardOne, heardTwo] = [new Recorder(), new Recorder()];
  one.openWatch(heardOne);
  two.openWatch(heardTwo);
  await clock.advance(0);
  server.partition(one);
  const pending = t.throwsAsync(put(one, '/a'), { instanceOf: ConnectionError });
  server.cut(one);
  await clock.advance(0);
  await pending;
  t.deepEqual(heardOne.said, ['end ConnectionError']);
  t.deepEqual(heardTwo.said, []);
});

test('close() fails pending calls, ends nothing aloud, and refuses later calls', async (t) => {
  const { clock, server } = memoryServer();
  const client = await connected(server);
  const heard = new Recorder();
  client.openWatch(heard);
  const pending = t.throwsAsync(put(client, '/a'), { instanceOf: ConnectionError });
  client.close();
  await pending;
  await t.throwsAsync(put(client, '/b'), { instanceOf: ConnectionError, message: /closed/ });
  await clock.advance(1);
  t.deepEqual(heard.said, []);
  client.openWatch(heard);
  await clock.advance(0);
  t.deepEqual(heard.said, ['end ConnectionError']);
});

test('a client is of no use until connect() has succeeded, nor after one that failed', async (t) => {
  const { clock, server } = memoryServer();
  const client = server.client();
  const heard = new Recorder();
  await t.throwsAsync(put(client, '/a'), { instanceOf: ConnectionError });
  client.openWatch(heard).create(1, { target: { prefix: '/' }, startRevision: 1 });
  await clock.advance(0);
  t.deepEqual(heard.said, ['end ConnectionError']);
  await client.connect(CALL);
  await put(client, '/a');
  server.stop();
  await t.throwsAsync(client.connect(CALL), { instanceOf: ConnectionError });
  server.start();
  await t.throwsAsync(put(client, '/b'), { instanceOf: ConnectionError });
  await client.connect(CALL);
  t.deepEqual(await keys(client, '/'), ['/a']);
});

test('a connect() that another one overtakes fails', async (t) => {
  const { server } = memoryServer();
  const client = server.client();
  const first = t.throwsAsync(client.connect(CALL), { instanceOf: ConnectionError });
  await client.connect(CALL);
  await first;
  t.true((await put(client, '/a')).succeeded);
});
