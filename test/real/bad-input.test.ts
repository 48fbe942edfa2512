import { type AddressInfo, createServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import {
  ConnectionError,
  type ConnectOptions,
  EtcdEphemeral,
  InvalidOptionError,
  PermissionDeniedError,
  UnauthenticatedError,
} from '../../src/index.ts';
import { certificateAuthority } from '../support/certificates.ts';
import { type EtcdOptions, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { see } from '../support/listings.ts';
import { freePort } from '../support/ports.ts';
import { until } from '../support/wait.ts';

/** Whatever a caller in JavaScript may pass. */
const as = <T>(value: unknown): T => value as T;

async function ownEtcd(t: ExecutionContext, options: EtcdOptions = {}) {
  const etcd = await startEtcd(options);
  t.teardown(() => etcd.destroy());
  return etcd;
}

async function connect(t: ExecutionContext, options: ConnectOptions) {
  const client = await EtcdEphemeral.connect({ ttl: 2, ...options });
  t.teardown(() => client.close());
  return client;
}

const ROOT = 'root:root-secret';

/** Everyone's password is the name and `-secret`. */
async function withUsers(t: ExecutionContext, grants: Readonly<Record<string, readonly string[]>>) {
  const etcd = await ownEtcd(t);
  const ctl = (...args: string[]) => etcdctl(etcd.endpoint, ...args);
  await ctl('user', 'add', ROOT);
  await ctl('user', 'grant-role', 'root', 'root');
  for (const [user, [type = '', prefix = '']] of Object.entries(grants)) {
    await ctl('user', 'add', `${user}:${user}-secret`);
    await ctl('role', 'add', user);
    await ctl('role', 'grant-permission', user, type, prefix, '--prefix');
    await ctl('user', 'grant-role', user, user);
  }
  await ctl('auth', 'enable');
  const root = (...args: string[]) => ctl('--user', ROOT, ...args);
  const authOf = (username: string) => ({ username, password: `${username}-secret` });
  return { etcd, root, authOf };
}

test('a function for hosts that fails is a ConnectionError that says so', async (t) => {
  const hosts = () => {
    throw new Error('the inventory is down');
  };
  const error = await t.throwsAsync(EtcdEphemeral.connect({ hosts, connectTimeout: 0.5 }), { code: 'CONNECTION' });
  t.regex(error?.message ?? '', /no etcd answered at the hosts given .*given as hosts failed.*the inventory is down/);
});

test('no server is a ConnectionError that names the endpoint and says what to do', async (t) => {
  const hosts = `http://127.0.0.1:${await freePort()}`;
  const error = await t.throwsAsync(EtcdEphemeral.connect({ hosts, connectTimeout: 0.5 }), {
    instanceOf: ConnectionError,
    code: 'CONNECTION',
  });
  t.true(error?.message.includes(hosts));
  t.regex(error?.message ?? '', /within 0\.5 s.*start it, or correct hosts/);
  t.true((error as ConnectionError).retryable);
});

test('a server that says nothing is a ConnectionError within connectTimeout', async (t) => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const hosts = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await t.throwsAsync(EtcdEphemeral.connect({ hosts, connectTimeout: 0.5 }), { instanceOf: ConnectionError });
});

test('with connectTimeout Infinity connect waits for a server, and its signal ends the wait', async (t) => {
  const etcd = await ownEtcd(t);
  await etcd.stop();
  const [stop, reason] = [new AbortController(), new Error('enough')];
  const options = { hosts: etcd.endpoint, connectTimeout: Number.POSITIVE_INFINITY, ttl: 2 };
  const given = EtcdEphemeral.connect({ ...options, signal: stop.signal });
  const waiting = EtcdEphemeral.connect(options);
  stop.abort(reason);
  t.is(await t.throwsAsync(given), reason);
  t.is(await t.throwsAsync(EtcdEphemeral.connect({ ...options, signal: AbortSignal.abort(reason) })), reason);
  await etcd.start();
  const client = await waiting;
  t.is(client.state, 'connected');
  await client.close();
});

test('options of connect that cannot be are refused before anything is asked', async (t) => {
  const refuses = (options: object, message: RegExp) =>
    t.throwsAsync(EtcdEphemeral.connect(as(options)), { instanceOf: InvalidOptionError, message });
  const { ca } = certificateAuthority();
  const credentials = { rootCertificate: ca.cert };
  for (const ttl of [0, -1, 1.5, 9_000_000_001]) await refuses({ ttl }, /ttl must be a whole number of seconds/);
  for (const connectTimeout of [0, -1, Number.NaN, '5']) await refuses({ connectTimeout }, /connectTimeout/);
  await refuses({ hosts: 'http://127.0.0.1:1', credentials }, /127\.0\.0\.1:1 is not encrypted.*https/);
  await refuses({ hosts: [] }, /at least one/);
  await refuses({ hosts: 'ftp://a' }, /must start with http/);
  await refuses({ hosts: ['http://a', 'https://b'] }, /cannot be mixed/);
  await refuses({ auth: { username: 'me' } }, /auth: must be/);
  await refuses({ grpcOptions: 5 }, /grpcOptions: must be an object/);
  await refuses({ grpcOptions: { 'grpc.keepalive_time_ms': {} } }, /grpcOptions: grpc.keepalive_time_ms must be/);
  await refuses({ signal: 5 }, /signal must be an AbortSignal/);
  await refuses({ endpoints: 'http://a' }, /no option "endpoints"; it takes hosts/);
  await refuses([], /must be an object/);
  const secret = await t.throwsAsync(EtcdEphemeral.connect({ hosts: 'http://me:secret@a' }));
  t.regex(secret?.message ?? '', /option auth/);
  t.false(String(secret?.stack).includes('secret@'));
});

test('a ttl above the floor is granted as asked, one below is raised by the server', async (t) => {
  const etcd = await ownEtcd(t);
  const client = await connect(t, { hosts: etcd.endpoint, ttl: 9_000_000_000 });
  const registration = await client.addKey('/k', 'v');
  t.is(registration.state, 'registered');
  const short = await connect(t, { hosts: etcd.endpoint, ttl: 1 });
  await short.addKey('/l', 'v');
  const leases = JSON.parse(await etcdctl(etcd.endpoint, 'lease', 'list', '-w', 'json')) as { leases: unknown[] };
  t.is(leases.leases.length, 2);
});

test('a certificate that is not to be trusted is a ConnectionError that says what to check, at once', async (t) => {
  const authority = certificateAuthority();
  const { certFile: cert, keyFile: key } = authority.issue('server');
  const etcd = await ownEtcd(t, { tls: { cert, key } });
  const forever = { hosts: etcd.endpoint, connectTimeout: Number.POSITIVE_INFINITY };
  for (const rootCertificate of [certificateAuthority().ca.cert, undefined]) {
    const error = await t.throwsAsync(
      EtcdEphemeral.connect({ ...forever, ...(rootCertificate && { credentials: { rootCertificate } }) }),
      { instanceOf: ConnectionError, message: /check the CA/ },
    );
    t.false((error as ConnectionError).retryable);
  }
  const client = await connect(t, { ...forever, credentials: { rootCertificate: authority.ca.cert } });
  t.is((await client.addKey('/k', 'v')).state, 'registered');
});

test('a wrong password is an UnauthenticatedError at once, and is not told', async (t) => {
  const { etcd, authOf } = await withUsers(t, { own: ['readwrite', '/own'] });
  const forever = { hosts: etcd.endpoint, connectTimeout: Number.POSITIVE_INFINITY };
  for (const auth of [{ username: 'own', password: 'wrong-secret' }, authOf('nobody'), undefined]) {
    const error = await t.throwsAsync(EtcdEphemeral.connect({ ...forever, auth }), {
      instanceOf: UnauthenticatedError,
      code: 'UNAUTHENTICATED',
      message: /option auth/,
    });
    t.false(`${error?.stack} ${JSON.stringify(error)} ${error?.cause}`.includes('secret'));
  }
});

test('a user without permission on the prefix gets a PermissionDeniedError from each call, and nothing is done', async (t) => {
  const { etcd, authOf, root } = await withUsers(t, { own: ['readwrite', '/own'] });
  const own = await connect(t, { hosts: etcd.endpoint, auth: authOf('own'), namespace: '/own' });
  t.is((await own.addKey('/k', 'v')).state, 'registered');
  await see(t, own.list('/', { watch: true })).untilNames('k');
  const client = await connect(t, { hosts: etcd.endpoint, auth: authOf('own'), namespace: '/other' });
  const before = await root('get', '', '--prefix');
  const denied = { instanceOf: PermissionDeniedError, code: 'PERMISSION_DENIED' };
  const told = await t.throwsAsync(client.addDir('/d'), denied);
  t.regex(told?.message ?? '', /\/d.*http:\/\/127\.0\.0\.1.*grant its role/);
  await t.throwsAsync(client.removeDir('/d'), denied);
  await t.throwsAsync(client.get('/d'), { ...denied, message: /\/d/ });
  await t.throwsAsync(client.list('/d'), { ...denied, message: /\/d/ });
  await t.throwsAsync(client.addKey('/d/k', 'v'), { ...denied, message: /\/d\/k/ });
  for (const via of ['mirror', 'direct'] as const) {
    const seen = see(t, client.list('/d', { watch: true, via, missing: 'wait' }));
    await seen.untilEnd();
    t.true(seen.error instanceof PermissionDeniedError);
    t.regex((seen.error as Error).message, /\/d/);
  }
  t.is(await root('get', '', '--prefix'), before);
  t.is(client.state, 'connected');
});

test('a registration that is no longer allowed is lost with that as its reason, and comes back when it is', async (t) => {
  const { etcd, authOf, root } = await withUsers(t, { own: ['readwrite', '/own'] });
  const client = await connect(t, { hosts: etcd.endpoint, auth: authOf('own'), namespace: '/own', heartbeat: 'put' });
  const registration = await client.addKey('/k', 'v');
  await root('role', 'revoke-permission', 'own', '/own', '--prefix');
  await until(() => registration.state === 'lost', 'the loss');
  await until(() => registration.error instanceof PermissionDeniedError, 'the reason');
  await root('role', 'grant-permission', 'own', 'readwrite', '/own', '--prefix');
  await until(() => registration.state === 'registered', 'the return');
  t.is((await root('get', '/own/k', '--print-value-only')).trim(), 'v');
});

test('a user who may only read lists through others, and directly where there are none', async (t) => {
  const { etcd, authOf } = await withUsers(t, { own: ['readwrite', '/own'], watcher: ['read', '/own'] });
  const own = await connect(t, { hosts: etcd.endpoint, auth: authOf('own'), namespace: '/own' });
  await own.addKey('/d/a', 'v');
  for (const candidate of [true, false]) {
    const client = await connect(t, { hosts: etcd.endpoint, auth: authOf('watcher'), namespace: '/own', candidate });
    const seen = see(t, client.list('/d', { watch: true }));
    await seen.untilNames('a');
    const b = await own.addKey('/d/b', 'v');
    await seen.untilNames('a b');
    const master = see(t, own.list('/d', { watch: true }));
    await master.untilNames('a b');
    await b.remove();
    await seen.untilNames('a');
    master.stop();
    const c = await own.addKey('/d/c', 'v');
    await seen.untilNames('a c');
    await c.remove();
    await seen.untilNames('a');
    t.is((await client.list('/d')).children.join(), 'a');
    await t.throwsAsync(client.addKey('/d/x', 'v'), { instanceOf: PermissionDeniedError });
    await client.close();
  }
});
