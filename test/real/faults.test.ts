import { setMaxListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import {
  ConnectionError,
  type ConnectOptions,
  EtcdEphemeral,
  type Registration,
  type RegistrationState,
} from '../../src/index.ts';
import { temporaryFolder } from '../support/children.ts';
import { startClient } from '../support/client-process.ts';
import { type EtcdOptions, type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { see } from '../support/listings.ts';
import { connectionsTo } from '../support/ports.ts';
import { startProxy } from '../support/proxy.ts';
import { until, within } from '../support/wait.ts';

async function ownEtcd(t: ExecutionContext, options: EtcdOptions = {}): Promise<EtcdProcess> {
  const etcd = await startEtcd(options);
  t.teardown(() => etcd.destroy());
  return etcd;
}

async function ownProxy(t: ExecutionContext, etcd: EtcdProcess) {
  const proxy = await startProxy(etcd.endpoint);
  t.teardown(() => proxy.close());
  return proxy;
}

async function connect(t: ExecutionContext, hosts: string | string[], options: ConnectOptions = {}) {
  const client = await EtcdEphemeral.connect({ ttl: 2, hosts, ...options });
  t.teardown(() => client.close());
  return client;
}

function statesOf(registration: Registration): RegistrationState[] {
  const told: RegistrationState[] = [];
  registration.state$.subscribe((state) => told.push(state));
  return told;
}

const get = (etcd: EtcdProcess, ...args: string[]) => etcdctl(etcd.endpoint, 'get', '-w', 'json', ...args);

test('a network that is cut for less than half the ttl makes no event (R6)', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await ownProxy(t, etcd);
  const client = await connect(t, proxy.endpoint, { ttl: 6 });
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  await until(
    async () => (await etcdctl(etcd.endpoint, 'get', '--prefix', '/_watcherDir/d//')).includes('//k'),
    'the mirror',
  );
  const [states, before] = [statesOf(registration), await get(etcd, '/d', '--prefix')];
  for (const fault of ['cut', 'refuse', 'blackhole'] as const) {
    if (fault !== 'cut') proxy[fault](true);
    if (fault !== 'blackhole') proxy.cut();
    await sleep(fault === 'cut' ? 0 : 1_500);
    proxy.heal();
    await until(() => client.state === 'connected', 'the connection');
    t.deepEqual(JSON.parse(await get(etcd, '/d', '--prefix')).kvs, JSON.parse(before).kvs, fault);
    // Until a keepalive has gone through again: the next outage counts from there.
    await etcdctl(etcd.endpoint, 'put', '/d/probe', '');
    await seen.untilNames('k probe');
    await etcdctl(etcd.endpoint, 'del', '/d/probe');
    await seen.untilNames('k');
    await sleep(1_600);
  }
  t.deepEqual(states, ['registered']);
  t.deepEqual(JSON.parse(await get(etcd, '/d', '--prefix')).kvs, JSON.parse(before).kvs);
});

test('packets that vanish for longer than the ttl lose the registration, and it is back when they pass (R4, R5)', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await ownProxy(t, etcd);
  const client = await connect(t, proxy.endpoint);
  const other = await connect(t, etcd.endpoint);
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, other.list('/d', { watch: true, via: 'direct' }));
  const own = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  await own.untilNames('k');
  const states = statesOf(registration);
  proxy.blackhole(true);
  await until(() => registration.state === 'lost', 'the loss');
  const update = registration.update('w');
  await seen.untilNames('');
  t.is((await own.untilStatus('stale')).children.join(), 'k');
  await other.addKey('/d/other', 'v');
  proxy.heal();
  await seen.untilNames('k other');
  await own.untilNames('k other');
  await update;
  t.is(await other.get('/d/k'), 'w');
  t.deepEqual(states, ['registered', 'lost', 'registered']);
});

test('a half-open connection is noticed also by a process that only watches, which goes to another endpoint (L3)', async (t) => {
  const etcd = await ownEtcd(t);
  const [one, two] = [await ownProxy(t, etcd), await ownProxy(t, etcd)];
  const client = await connect(t, [one.endpoint, two.endpoint], { candidate: false });
  const seen = see(t, client.list('/d', { watch: true, missing: 'wait' }));
  await seen.untilNames('');
  const used = one.open > 0 ? one : two;
  used.blackhole(true);
  await etcdctl(etcd.endpoint, 'put', '/d/k', 'v');
  await seen.untilNames('k');
  t.true(seen.listings.every(({ status }, i) => status === 'live' || i > 0));
  t.is(client.state, 'connected');
});

test('a server that stands still for longer than the ttl: what it deletes as it goes on is back (R4)', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, etcd.endpoint);
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  etcd.pause();
  await until(() => registration.state === 'lost', 'the loss');
  await seen.untilStatus('stale');
  etcd.resume();
  await until(() => registration.state === 'registered', 'the return');
  t.is((await seen.untilNames('k')).status, 'live');
});

test('close ends soon also when the server stands still, and leaves no socket', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, etcd.endpoint);
  await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  etcd.pause();
  await within(client.close(), 'close', 10_000);
  t.true(seen.completed);
  await until(() => connectionsTo(etcd.clientPort, { anyState: true }) === 0, 'the sockets to be closed');
  etcd.resume();
});

test('a killed server that is back after longer than the ttl: the lease is resumed, and there is no event (R6)', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, etcd.endpoint);
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  const before = JSON.parse(await get(etcd, '/d', '--prefix')).kvs;
  await etcd.kill();
  await until(() => registration.state === 'lost', 'the loss');
  await etcd.start();
  await until(() => registration.state === 'registered', 'the return');
  t.deepEqual(JSON.parse(await get(etcd, '/d', '--prefix')).kvs, before);
  await client.addKey('/d/l', 'v');
  await seen.untilNames('k l');
});

test('deletes and a compaction while a watcher is away are in its list when it is back (L5)', async (t) => {
  const etcd = await ownEtcd(t);
  const proxy = await ownProxy(t, etcd);
  for (const name of ['a', 'b', 'c']) await etcdctl(etcd.endpoint, 'put', `/d/${name}`, '');
  const client = await connect(t, proxy.endpoint);
  const lists = (['mirror', 'direct'] as const).map((via) => see(t, client.list('/d', { watch: true, via })));
  for (const seen of lists) await seen.untilNames('a b c');
  proxy.refuse(true);
  proxy.cut();
  await etcdctl(etcd.endpoint, 'del', '/d/b');
  await etcdctl(etcd.endpoint, 'put', '/d/d', '');
  const { header } = JSON.parse(await get(etcd, '/d/d')) as { header: { revision: number } };
  await etcdctl(etcd.endpoint, 'compact', String(header.revision));
  for (const seen of lists) t.is((await seen.untilStatus('stale')).children.join(' '), 'a b c');
  proxy.heal();
  for (const seen of lists) await seen.untilNames('a c d');
});

test('a server that has forgotten everything is noticed: keys and added directories are made again, lists begin a new epoch (R4, L6)', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, etcd.endpoint);
  await client.addDir('/empty');
  const registration = await client.addKey('/d/k', 'v');
  for (let i = 0; i < 20; i++) await registration.update(`v${i}`);
  await etcdctl(etcd.endpoint, 'put', '/d/theirs', '');
  const lists = (['mirror', 'direct'] as const).map((via) => see(t, client.list('/d', { watch: true, via })));
  for (const seen of lists) await seen.untilNames('k theirs');
  await etcd.restart({ wipe: true });
  for (const seen of lists) t.is((await seen.untilNames('k')).epoch, 1);
  t.is(await client.get('/d/k'), 'v19');
  await until(() => client.list('/empty').then(({ children }) => children.length === 0), 'the added directory');
  await etcdctl(etcd.endpoint, 'put', '/d/late', '');
  for (const seen of lists) await seen.untilNames('k late');
});

test('a server restored from an older snapshot is noticed: registrations are back, lists are right (R4, L6)', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, etcd.endpoint);
  const kept = await client.addKey('/d/kept', 'old');
  const removed = await client.addKey('/d/removed', 'v');
  const lists = (['mirror', 'direct'] as const).map((via) => see(t, client.list('/d', { watch: true, via })));
  for (const seen of lists) await seen.untilNames('kept removed');
  const file = join(temporaryFolder('etcd-snapshot-'), 'snapshot.db');
  await etcdctl(etcd.endpoint, 'snapshot', 'save', file);
  await kept.update('new');
  await removed.remove();
  await client.addKey('/d/later', 'v');
  for (let i = 0; i < 20; i++) await etcdctl(etcd.endpoint, 'put', '/elsewhere', String(i));
  for (const seen of lists) await seen.untilNames('kept later');
  await etcd.stop();
  rmSync(etcd.dataDir, { recursive: true });
  const peer = 'http://127.0.0.1:1';
  const member = [
    '--name',
    etcd.name,
    '--initial-cluster',
    `${etcd.name}=${peer}`,
    '--initial-advertise-peer-urls',
    peer,
  ];
  await etcdctl(etcd.endpoint, 'snapshot', 'restore', file, '--data-dir', etcd.dataDir, ...member);
  await etcd.start();
  for (const seen of lists) await until(() => (seen.last?.epoch ?? 0) > 0, 'a new epoch');
  for (const seen of lists) await seen.untilNames('kept later');
  t.is(await client.get('/d/kept'), 'new');
  await until(() => kept.state === 'registered', 'the registration');
  await etcdctl(etcd.endpoint, 'put', '/d/more', '');
  for (const seen of lists) await seen.untilNames('kept later more');
});

test('a full server: the dead leave mirrored lists all the same, and when there is room all goes on', async (t) => {
  const etcd = await ownEtcd(t, { quotaBytes: 4 * 1024 * 1024 });
  const dying = startClient(t, { options: { hosts: etcd.endpoint, ttl: 2 }, keys: { '/d/dying': 'v' } });
  await dying.said('ready');
  const [client, other] = [await connect(t, etcd.endpoint), await connect(t, etcd.endpoint)];
  const registration = await client.addKey('/d/k', 'v');
  const lists = [client, other].map((it) => see(t, it.list('/d', { watch: true })));
  for (const seen of lists) await seen.untilNames('dying k');
  const filler = 'x'.repeat(100_000);
  await until(
    () =>
      etcdctl(etcd.endpoint, 'put', '/filler', filler).then(
        () => false,
        (error) => /space exceeded/.test(String(error)),
      ),
    'the server to be full',
  );
  dying.kill('SIGKILL');
  const waiting = registration.update('w');
  for (const seen of lists) await seen.untilNames('k');
  t.not(registration.state, 'lost');
  const { header } = JSON.parse(await get(etcd, '/filler')) as { header: { revision: number } };
  await etcdctl(etcd.endpoint, 'compact', String(header.revision));
  await etcdctl(etcd.endpoint, 'defrag');
  await etcdctl(etcd.endpoint, 'alarm', 'disarm');
  await waiting;
  t.is(await other.get('/d/k'), 'w');
  await other.addKey('/d/new', 'v');
  for (const seen of lists) await seen.untilNames('k new');
});

test('when tokens run out, and when the server forgets them, lists and registrations go on', async (t) => {
  const etcd = await ownEtcd(t, { extraArgs: ['--auth-token-ttl', '1'] });
  const ctl = (...args: string[]) => etcdctl(etcd.endpoint, ...args);
  await ctl('user', 'add', 'root:root-secret');
  await ctl('user', 'grant-role', 'root', 'root');
  await ctl('auth', 'enable');
  const auth = { username: 'root', password: 'root-secret' };
  const proxy = await ownProxy(t, etcd);
  const client = await connect(t, etcd.endpoint, { auth });
  const idle = await connect(t, proxy.endpoint, { auth, candidate: false });
  const registration = await client.addKey('/d/a', 'v');
  const lists = [client, idle].map((it) => see(t, it.list('/d', { watch: true, via: 'direct' })));
  for (const seen of lists) await seen.untilNames('a');
  await sleep(3_000);
  const connections = proxy.accepted;
  lists.push(...[client, idle].map((it) => see(t, it.list('/d', { watch: true }))));
  lists.push(...[client, idle].map((it) => see(t, it.list('/d', { watch: true, values: true }))));
  await client.addKey('/d/b', 'v');
  for (const seen of lists) await seen.untilNames('a b');
  await etcd.restart();
  await client.addKey('/d/c', 'v');
  for (const seen of lists) await seen.untilNames('a b c');
  t.false(lists.some(({ ended }) => ended));
  await until(() => registration.state === 'registered', 'the registration');
  t.true(proxy.accepted - connections <= 15, `${proxy.accepted - connections} connections`);
});

test('hosts may be a function, which is asked again when the store has gone elsewhere (R4)', async (t) => {
  const etcd = await ownEtcd(t);
  const [old, moved] = [await ownProxy(t, etcd), await ownProxy(t, etcd)];
  let hosts = old.endpoint;
  const client = await EtcdEphemeral.connect({ ttl: 2, hosts: () => [hosts] });
  t.teardown(() => client.close());
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  hosts = moved.endpoint;
  old.refuse(true);
  old.cut();
  await until(() => moved.open === 1, 'the client to go there');
  await etcdctl(etcd.endpoint, 'put', '/d/l', 'v');
  await seen.untilNames('k l');
  await until(() => registration.state === 'registered', 'the registration');
  t.is(old.open, 0);
});

test('each client has one connection, one lease, one lease stream and one watch stream (S1)', async (t) => {
  const etcd = await ownEtcd(t);
  const [proxy, otherProxy] = [await ownProxy(t, etcd), await ownProxy(t, etcd)];
  // A ttl at which a busy machine is taken for no dead connection.
  const client = await connect(t, proxy.endpoint, { ttl: 60 });
  const twins = [
    await connect(t, otherProxy.endpoint, { ttl: 60 }),
    await connect(t, otherProxy.endpoint, { ttl: 60 }),
  ];
  for (const it of [client, ...twins]) {
    const prefix = it === client ? 'c' : `t${twins.indexOf(it as EtcdEphemeral)}`;
    await Promise.all(Array.from({ length: 20 }, (_, i) => it.addKey(`/d${i}/${prefix}`, 'v')));
    const lists = Array.from({ length: 20 }, (_, i) => see(t, it.list(`/d${i}`, { watch: true })));
    for (const seen of lists) await until(() => seen.last?.children.includes(prefix), 'each list');
  }
  t.deepEqual([proxy.open, proxy.accepted], [1, 1]);
  t.deepEqual([otherProxy.open, otherProxy.accepted], [2, 2], 'clients of one process do not share a connection');
  const leases = JSON.parse(await etcdctl(etcd.endpoint, 'lease', 'list', '-w', 'json')) as { leases: unknown[] };
  t.is(leases.leases.length, 3);
  await Promise.all(twins.map((it) => it.close()));
  await until(() => otherProxy.open === 0, 'the connections to be closed');
  t.is(client.state, 'connected');
});

test('a peer that resets each connection at the worst moment brings down no process (S3)', async (t) => {
  let turns = 0;
  const server = createServer((socket) => {
    turns += 1;
    // From at once to some turns of the event loop later: somewhere between is the moment between two of its listeners.
    let left = turns % 8;
    const reset = () => (left-- > 0 ? setImmediate(reset) : socket.resetAndDestroy());
    reset();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const hosts = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [stop, reason] = [new AbortController(), new Error('enough')];
  setMaxListeners(0, stop.signal);
  const options = { hosts, connectTimeout: Number.POSITIVE_INFINITY, signal: stop.signal };
  const tries = Array.from({ length: 10 }, () => t.throwsAsync(EtcdEphemeral.connect(options), { is: reason }));
  await until(() => turns >= 80, 'ten resets at each moment');
  stop.abort(reason);
  await Promise.all(tries);
});

test('a connect that is given up at any moment leaves no socket behind (S2)', async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const hosts = `http://127.0.0.1:${port}`;
  for (let round = 0; round < 10; round++) {
    const tries = Array.from({ length: 20 }, (_, i) => EtcdEphemeral.connect({ hosts, connectTimeout: (i + 1) / 500 }));
    // A loop that is busy lets the timeout come at moments at which it otherwise would not.
    for (const endMs = performance.now() + 5; performance.now() < endMs; );
    await Promise.all(tries.map((connecting) => t.throwsAsync(connecting, { instanceOf: ConnectionError })));
  }
  await until(() => connectionsTo(port, { anyState: true }) === 0, 'all sockets to be closed');
});
