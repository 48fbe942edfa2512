import { type AddressInfo, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { ConnectionError, StoreError } from '../../src/core/errors.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import type { EtcdStoreOptions } from '../../src/etcd/options.ts';
import { type EtcdProcess, startCluster, startEtcd } from '../support/etcd-process.ts';
import { connectionsTo, freePort } from '../support/ports.ts';
import { startProxy } from '../support/proxy.ts';
import { KeepAliveRecorder, WatchRecorder } from '../support/recorder.ts';
import { until, within } from '../support/wait.ts';

const CALL = { timeoutMs: 10_000 };
/** For what is to time out. */
const SHORT = { timeoutMs: 500 };
const ANY = { type: 'range', target: { prefix: '' } } as const;

async function ownEtcd(t: ExecutionContext): Promise<EtcdProcess> {
  const etcd = await startEtcd();
  t.teardown(() => etcd.destroy());
  return etcd;
}

async function connected(t: ExecutionContext, options: EtcdStoreOptions): Promise<EtcdStore> {
  const store = new EtcdStore(options);
  t.teardown(() => store.close());
  await store.connect(CALL);
  return store;
}

async function put(store: EtcdStore, key: string): Promise<number> {
  return (await store.txn({ compares: [], success: [{ type: 'put', key, value: '' }] }, CALL)).header.revision;
}

/** Uses every service of a store. */
async function busy(store: EtcdStore) {
  const watch = new WatchRecorder();
  const keepAlive = new KeepAliveRecorder();
  const lease = await store.leaseGrant(60, CALL);
  store.openWatch(watch).create(1, { target: { prefix: '' }, startRevision: 0 });
  store.openKeepAlive(keepAlive).send(lease.id);
  await watch.untilCreated(1);
  await keepAlive.untilAlive(lease.id);
  return { watch, keepAlive };
}

for (const pool of [undefined, 0, 1]) {
  test(`a store holds one socket, with grpc.use_local_subchannel_pool ${pool ?? 'not set'}`, async (t) => {
    const etcd = await ownEtcd(t);
    const grpcOptions = pool === undefined ? undefined : { 'grpc.use_local_subchannel_pool': pool };
    const store = await connected(t, { hosts: etcd.endpoint, grpcOptions });
    await busy(store);
    t.is(connectionsTo(etcd.clientPort), 1);
    store.close();
    await until(() => connectionsTo(etcd.clientPort, { anyState: true }) === 0, 'the socket to be closed');
  });
}

test('two stores to one endpoint do not share a connection', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await startProxy(etcd.endpoint);
  t.teardown(() => proxy.close());
  await busy(await connected(t, { hosts: proxy.endpoint }));
  await busy(await connected(t, { hosts: proxy.endpoint }));
  t.is(proxy.open, 2);
});

test('a store that shares its socket by the wish of the user takes only its own streams with it', async (t) => {
  const etcd = await ownEtcd(t);
  const options = { hosts: etcd.endpoint, grpcOptions: { 'grpc.use_local_subchannel_pool': 0 } };
  const [leaving, staying] = [await connected(t, options), await connected(t, options)];
  await busy(leaving);
  const { watch } = await busy(staying);
  t.is(connectionsTo(etcd.clientPort), 1);
  const watchers = async () => {
    const metrics = await (await fetch(`${etcd.endpoint}/metrics`)).text();
    return Number(/^etcd_debugging_mvcc_watcher_total (\d+)/m.exec(metrics)?.[1]);
  };
  t.is(await watchers(), 2);
  leaving.close();
  await until(async () => (await watchers()) === 1, 'the watch of the store that left to be ended');
  await put(staying, '/k');
  await watch.untilEvents(1, 1);
});

test('50 reconnects leave one socket, and no call back from any of them', async (t) => {
  const etcd = await ownEtcd(t);
  const store = await connected(t, { hosts: etcd.endpoint });
  const recorders = [];
  for (let i = 0; i < 50; i++) {
    recorders.push(await busy(store));
    await store.connect(CALL);
  }
  await until(() => connectionsTo(etcd.clientPort, { anyState: true }) === 1, 'the old sockets to be closed');
  await put(store, '/k');
  t.deepEqual(
    recorders.flatMap(({ watch, keepAlive }) => [...watch.ends, ...keepAlive.ends, ...watch.of(1)]),
    [],
  );
});

test('after close() nothing calls back, pending calls reject, and later ones too', async (t) => {
  const etcd = await ownEtcd(t);
  const store = await connected(t, { hosts: etcd.endpoint });
  const { watch, keepAlive } = await busy(store);
  etcd.pause();
  const pending = store.range(ANY, CALL);
  store.close();
  store.close();
  await t.throwsAsync(pending, { instanceOf: ConnectionError, message: /closed/ });
  await t.throwsAsync(store.range(ANY, CALL), { instanceOf: ConnectionError });
  await t.throwsAsync(store.connect(CALL), { instanceOf: ConnectionError });
  etcd.resume();
  await put(await connected(t, { hosts: etcd.endpoint }), '/k');
  t.deepEqual([...watch.ends, ...keepAlive.ends, ...watch.of(1)], []);
});

test('where nobody listens connect() fails, and succeeds once somebody does', async (t) => {
  const etcd = await ownEtcd(t);
  await etcd.stop();
  const store = new EtcdStore({ hosts: etcd.endpoint });
  t.teardown(() => store.close());
  const error = await t.throwsAsync(store.connect(CALL), { instanceOf: ConnectionError });
  t.true((error as ConnectionError).retryable);
  t.true(error?.message.includes(etcd.endpoint));
  await etcd.restart();
  t.true((await store.connect(CALL)).revision >= 1);
});

test('a peer that accepts and never speaks makes connect() fail in time, and leaves no socket', async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  for (const scheme of ['http', 'https']) {
    const store = new EtcdStore({ hosts: `${scheme}://127.0.0.1:${port}` });
    for (let i = 0; i < 3; i++) {
      await t.throwsAsync(within(store.connect(SHORT), 'connect() to fail'), { instanceOf: ConnectionError });
    }
    await until(() => sockets.size === 0, `all ${scheme} sockets to be closed`);
  }
});

test('a silent proxy behind an open connection: calls time out, streams end, connect() starts afresh', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await startProxy(etcd.endpoint);
  t.teardown(() => proxy.close());
  const store = await connected(t, { hosts: proxy.endpoint });
  const { watch, keepAlive } = await busy(store);
  proxy.blackhole(true);
  await t.throwsAsync(store.range(ANY, SHORT), { instanceOf: ConnectionError, message: /did not answer/ });
  t.true((await watch.untilEnd()) instanceof ConnectionError);
  t.true((await keepAlive.untilEnd()) instanceof ConnectionError);
  await t.throwsAsync(store.connect(SHORT), { instanceOf: ConnectionError });
  t.is(connectionsTo(proxy.port), 0);
  proxy.heal();
  await store.connect(CALL);
  await busy(store);
  t.is(watch.ends.length + keepAlive.ends.length, 2);
});

test('connect() out of a half-open connection leaves none of its sockets', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await startProxy(etcd.endpoint);
  t.teardown(() => proxy.close());
  const store = await connected(t, { hosts: proxy.endpoint });
  await busy(store);
  proxy.blackhole(true);
  await t.throwsAsync(store.connect(SHORT), { instanceOf: ConnectionError });
  await until(() => connectionsTo(proxy.port, { anyState: true }) === 0, 'the half-open socket to be given up');
});

test('a cut connection ends each stream once; a watch resumes after its last event', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await startProxy(etcd.endpoint);
  t.teardown(() => proxy.close());
  const store = await connected(t, { hosts: proxy.endpoint });
  const direct = await connected(t, { hosts: etcd.endpoint });
  const { watch, keepAlive } = await busy(store);
  const seen = await put(direct, '/1');
  await watch.untilEvents(1, 1);
  proxy.cut();
  t.true((await watch.untilEnd()) instanceof ConnectionError);
  await keepAlive.untilEnd();
  await t.throwsAsync(store.range(ANY, CALL), { instanceOf: ConnectionError, message: /not connected/ });
  const unopened = new WatchRecorder();
  store.openWatch(unopened);
  await unopened.untilEnd();
  t.is(proxy.accepted, 1, 'only connect() connects');
  const missed = [await put(direct, '/2'), await put(direct, '/3')];
  await store.connect(CALL);
  const resumed = new WatchRecorder();
  store.openWatch(resumed).create(1, { target: { prefix: '/' }, startRevision: seen + 1 });
  t.deepEqual(await resumed.untilEvents(1, 2), [`put /2@${missed[0]}`, `put /3@${missed[1]}`]);
  t.is(watch.ends.length, 1);
  t.is(keepAlive.ends.length, 1);
});

test('after a restart of etcd connect() finds the same cluster, wiped another revision', async (t) => {
  const etcd = await ownEtcd(t);
  const store = await connected(t, { hosts: etcd.endpoint });
  const { watch } = await busy(store);
  const revision = await put(store, '/k');
  await etcd.restart();
  await watch.untilEnd();
  t.is((await store.connect(CALL)).revision, revision);
  await etcd.restart({ wipe: true });
  t.true((await until(() => store.connect(CALL), 'a connection')).revision < revision);
});

test('a frozen etcd makes calls fail in time', async (t) => {
  const etcd = await ownEtcd(t);
  const store = await connected(t, { hosts: etcd.endpoint });
  etcd.pause();
  await t.throwsAsync(store.range(ANY, SHORT), { instanceOf: ConnectionError });
  await t.throwsAsync(store.leaseGrant(5, SHORT), { instanceOf: ConnectionError });
  await t.throwsAsync(store.connect(SHORT), { instanceOf: ConnectionError });
  etcd.resume();
  await store.connect(CALL);
});

test('each connect() goes on to the next endpoint, and asks a function for them again', async (t) => {
  const etcd = await startEtcd({ extraAddresses: ['127.0.0.2', '127.0.0.3'] });
  t.teardown(() => etcd.destroy());
  let hosts: readonly string[] = etcd.endpoints;
  const store = new EtcdStore({ hosts: async () => hosts });
  t.teardown(() => store.close());
  const used = [];
  for (let i = 0; i < 4; i++) {
    await store.connect(CALL);
    used.push(store.endpoint);
  }
  const [first] = used;
  t.deepEqual(used.slice(0, 3).sort(), [...etcd.endpoints]);
  t.is(used[3], first);
  hosts = [etcd.endpoint];
  await store.connect(CALL);
  t.is(store.endpoint, etcd.endpoint);
  hosts = [];
  const error = await t.throwsAsync(store.connect(CALL), { instanceOf: ConnectionError, message: /no host/ });
  t.true((error as ConnectionError).retryable);
});

test('a function that hangs or fails is a connection that fails', async (t) => {
  const hanging = new EtcdStore({ hosts: () => new Promise<string>(() => {}) });
  await t.throwsAsync(hanging.connect(SHORT), { instanceOf: ConnectionError, message: /did not answer/ });
  const failing = new EtcdStore({ hosts: () => Promise.reject(new Error('no such service')) });
  await t.throwsAsync(failing.connect(CALL), { instanceOf: ConnectionError, message: /no such service/ });
});

test('a connect() that another one overtakes rejects, and the other one wins', async (t) => {
  const etcd = await ownEtcd(t);
  const store = new EtcdStore({ hosts: etcd.endpoint });
  t.teardown(() => store.close());
  const first = store.connect(CALL);
  const second = store.connect(CALL);
  await t.throwsAsync(first, { instanceOf: ConnectionError, message: /another connect/ });
  await second;
  await busy(store);
  t.is(connectionsTo(etcd.clientPort), 1);
  const third = store.connect(CALL);
  store.close();
  await t.throwsAsync(third, { instanceOf: ConnectionError, message: /closed/ });
  await until(() => connectionsTo(etcd.clientPort, { anyState: true }) === 0, 'all sockets to be closed');
});

test('a server that is no etcd is named as such', async (t) => {
  const { createServer: createHttp2 } = await import('node:http2');
  const server = createHttp2((_, response) => {
    response.writeHead(200, { 'content-type': 'application/grpc' });
    response.addTrailers({ 'grpc-status': '12', 'grpc-message': 'unknown service' });
    response.end();
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const store = new EtcdStore({ hosts: `127.0.0.1:${port}` });
  t.teardown(() => store.close());
  await t.throwsAsync(store.connect(CALL), { instanceOf: StoreError, message: /etcd's v3/ });
});

test('a member that lost its quorum does not let connect, and ends its streams', async (t) => {
  const cluster = await startCluster(3);
  t.teardown(() => cluster.destroy());
  const [survivor, ...others] = cluster.members as [EtcdProcess, ...EtcdProcess[]];
  const store = await connected(t, { hosts: survivor.endpoint });
  const { watch, keepAlive } = await busy(store);
  await Promise.all(others.map((member) => member.kill()));
  t.true((await watch.untilEnd()) instanceof ConnectionError);
  t.true((await keepAlive.untilEnd()) instanceof ConnectionError);
  await t.throwsAsync(store.connect(SHORT), { instanceOf: ConnectionError });
  for (const member of others) member.spawn();
  await until(() => store.connect(CALL), 'a connection');
});
