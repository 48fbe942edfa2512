import test, { type ExecutionContext } from 'ava';
import {
  ConnectionError,
  InvalidOptionError,
  PermissionDeniedError,
  UnauthenticatedError,
} from '../../src/core/errors.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import type { EtcdStoreOptions } from '../../src/etcd/options.ts';
import { certificateAuthority } from '../support/certificates.ts';
import { type EtcdOptions, type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { connectionsTo } from '../support/ports.ts';
import { WatchRecorder } from '../support/recorder.ts';
import { until } from '../support/wait.ts';

const CALL = { timeoutMs: 10_000 };
const read = (key: string) => ({ type: 'range', target: { key } }) as const;
const write = (key: string) => ({ compares: [], success: [{ type: 'put', key, value: '' }] }) as const;

async function ownEtcd(t: ExecutionContext, options: EtcdOptions = {}): Promise<EtcdProcess> {
  const etcd = await startEtcd(options);
  t.teardown(() => etcd.destroy());
  return etcd;
}

function ownStore(t: ExecutionContext, options: EtcdStoreOptions): EtcdStore {
  const store = new EtcdStore(options);
  t.teardown(() => store.close());
  return store;
}

const ROOT = { username: 'root', password: 'root-secret' };
const USER = { username: 'user', password: 'user-secret' };

/** Users root, and `user`, who may do everything under `/own/` and nothing else. */
async function withUsers(t: ExecutionContext, options: EtcdOptions = {}): Promise<EtcdProcess> {
  const etcd = await ownEtcd(t, options);
  const ctl = (...args: string[]) => etcdctl(etcd.endpoint, ...args);
  await ctl('user', 'add', `root:${ROOT.password}`);
  await ctl('user', 'grant-role', 'root', 'root');
  await ctl('user', 'add', `user:${USER.password}`);
  await ctl('role', 'add', 'own');
  await ctl('role', 'grant-permission', 'own', 'readwrite', '/own/', '--prefix');
  await ctl('user', 'grant-role', 'user', 'own');
  await ctl('auth', 'enable');
  return etcd;
}

test('TLS: the right CA is let in by one socket, a wrong one or none is told to check', async (t) => {
  const authority = certificateAuthority();
  const { certFile: cert, keyFile: key } = authority.issue('server');
  const etcd = await ownEtcd(t, { tls: { cert, key } });
  const store = ownStore(t, { hosts: etcd.endpoint, credentials: { rootCertificate: authority.ca.cert } });
  await store.connect(CALL);
  await store.txn(write('/k'), CALL);
  const watch = new WatchRecorder();
  store.openWatch(watch).create(1, { target: { key: '/k' }, startRevision: 1 });
  await watch.untilEvents(1, 1);
  t.is(connectionsTo(etcd.clientPort), 1);

  const rootCertificate = certificateAuthority().ca.cert;
  for (const wrong of [{ credentials: { rootCertificate } }, {}]) {
    const error = await t.throwsAsync(ownStore(t, { hosts: etcd.endpoint, ...wrong }).connect(CALL), {
      instanceOf: ConnectionError,
      message: /check the CA/,
    });
    t.false((error as ConnectionError).retryable);
  }
});

test('TLS: a certificate for another name is told so', async (t) => {
  const authority = certificateAuthority();
  const { certFile: cert, keyFile: key } = authority.issue('server', 'DNS:elsewhere');
  const etcd = await ownEtcd(t, { tls: { cert, key } });
  const store = ownStore(t, { hosts: etcd.endpoint, credentials: { rootCertificate: authority.ca.cert } });
  const error = await t.throwsAsync(store.connect(CALL), { instanceOf: ConnectionError, message: /for other names/ });
  t.false((error as ConnectionError).retryable);
});

test('TLS: a server that speaks none is told so; a client that speaks none only fails to connect', async (t) => {
  const plain = await ownEtcd(t);
  const secureHost = plain.endpoint.replace('http:', 'https:');
  const error = await t.throwsAsync(ownStore(t, { hosts: secureHost }).connect(CALL), {
    instanceOf: ConnectionError,
    // It may also be quick enough to reset the connection.
    message: /not speak TLS|ECONNRESET/,
  });
  t.true((error as ConnectionError).retryable, 'it hangs up on us as one does that is just stopping');
  const authority = certificateAuthority();
  const { certFile: cert, keyFile: key } = authority.issue('server');
  const secure = await ownEtcd(t, { tls: { cert, key } });
  const plainHost = secure.endpoint.replace('https:', 'http:');
  await t.throwsAsync(ownStore(t, { hosts: plainHost }).connect(CALL), { instanceOf: ConnectionError });
});

test('mutual TLS: a client certificate is shown, asked for again at each connect', async (t) => {
  const authority = certificateAuthority();
  const { certFile: cert, keyFile: key } = authority.issue('server');
  const etcd = await ownEtcd(t, { tls: { cert, key, clientCa: authority.ca.certFile } });
  const client = authority.issue('client');
  const stranger = certificateAuthority().issue('stranger');
  const rootCertificate = authority.ca.cert;
  let shown = client;
  const credentials = () => ({ rootCertificate, privateKey: shown.key, certChain: shown.cert });
  const store = ownStore(t, { hosts: etcd.endpoint, credentials });
  await store.connect(CALL);
  shown = stranger;
  await t.throwsAsync(store.connect(CALL), { instanceOf: ConnectionError });
  shown = client;
  await store.connect(CALL);
  const bare = ownStore(t, { hosts: etcd.endpoint, credentials: { rootCertificate } });
  await t.throwsAsync(bare.connect(CALL), { instanceOf: ConnectionError });
});

test('credentials that cannot be used are refused: with http, half a pair, or broken', async (t) => {
  const { ca } = certificateAuthority();
  const rootCertificate = ca.cert;
  const invalid = { instanceOf: InvalidOptionError };
  t.throws(() => new EtcdStore({ hosts: 'http://a', credentials: { rootCertificate } }), invalid);
  t.throws(() => new EtcdStore({ hosts: 'http://a', credentials: () => ({ rootCertificate }) }), invalid);
  t.throws(() => new EtcdStore({ hosts: 'a', credentials: { rootCertificate, certChain: ca.cert } }), invalid);
  const late = new EtcdStore({ hosts: async () => 'http://a', credentials: { rootCertificate } });
  await t.throwsAsync(late.connect(CALL), invalid);
  const torn = new EtcdStore({ hosts: 'a', credentials: () => ({ rootCertificate: Buffer.from('-----BEGIN') }) });
  const error = await t.throwsAsync(torn.connect(CALL), { instanceOf: ConnectionError });
  t.true((error as ConnectionError).retryable);
});

test('a wrong password, no user and an unknown user are unauthenticated, and no password is told', async (t) => {
  const etcd = await withUsers(t);
  for (const auth of [
    { ...ROOT, password: 'wrong-secret' },
    { username: 'nobody', password: 'wrong-secret' },
    undefined,
  ]) {
    const error = await t.throwsAsync(ownStore(t, { hosts: etcd.endpoint, auth }).connect(CALL), {
      instanceOf: UnauthenticatedError,
      message: /option auth/,
    });
    t.false(`${error?.message} ${error?.stack} ${JSON.stringify(error)} ${error?.cause}`.includes('secret'));
  }
});

test('a user is let in by one socket, and may do what the role allows', async (t) => {
  const etcd = await withUsers(t);
  const store = ownStore(t, { hosts: etcd.endpoint, auth: () => USER, probeKey: '/own/' });
  const header = await store.connect(CALL);
  const { header: after } = await store.txn(write('/own/k'), CALL);
  t.is(after.revision, header.revision + 1);
  t.is(connectionsTo(etcd.clientPort), 1);
  await t.throwsAsync(store.range(read('/other'), CALL), { instanceOf: PermissionDeniedError });
  await t.throwsAsync(store.txn(write('/other'), CALL), { instanceOf: PermissionDeniedError });
  const lease = await store.leaseGrant(10, CALL);
  await store.leaseRevoke(lease.id, CALL);
});

test('connect() succeeds also where the user may not read the key that proves it', async (t) => {
  const etcd = await withUsers(t);
  const root = ownStore(t, { hosts: etcd.endpoint, auth: ROOT });
  await root.connect(CALL);
  const { header } = await root.txn(write('/k'), CALL);
  const store = ownStore(t, { hosts: etcd.endpoint, auth: USER });
  t.deepEqual(await store.connect(CALL), header);
});

test('a refused watch is cancelled under its own id, whatever was asked for around it', async (t) => {
  const etcd = await withUsers(t);
  const store = ownStore(t, { hosts: etcd.endpoint, auth: USER });
  await store.connect(CALL);
  const watch = new WatchRecorder();
  const stream = store.openWatch(watch);
  const startRevision = 1;
  stream.create(1, { target: { key: '/own/a' }, startRevision });
  stream.create(2, { target: { key: '/other' }, startRevision });
  stream.create(3, { target: { key: '/own/b' }, startRevision });
  stream.create(4, { target: { prefix: '/' }, startRevision });
  stream.create(5, { target: { prefix: '/own/' }, startRevision });
  t.true((await watch.untilCanceled(2)) instanceof PermissionDeniedError);
  t.true((await watch.untilCanceled(4)) instanceof PermissionDeniedError);
  await watch.untilCreated(5);
  t.deepEqual(watch.created, [1, 3, 5]);
  await store.txn(write('/own/b'), CALL);
  await watch.untilEvents(3, 1);
  await watch.untilEvents(5, 1);
  t.deepEqual(watch.ends, []);
  t.is(watch.canceled.size, 2);
});

test('a call whose token has run out gets a new one; so does a watch, by way of its stream', async (t) => {
  const etcd = await withUsers(t, { extraArgs: ['--auth-token-ttl', '1'] });
  const store = ownStore(t, { hosts: etcd.endpoint, auth: USER });
  await store.connect(CALL);
  await store.txn(write('/own/k'), CALL);
  const watch = new WatchRecorder();
  const stream = store.openWatch(watch);
  let id = 0;
  // Each create renews a token that lives; what is awaited is one that comes after it has run out.
  await until(
    async () => {
      const created = watch.created.length;
      id += 1;
      await new Promise((resolve) => setTimeout(resolve, id * 300));
      stream.create(id, { target: { key: '/own/k' }, startRevision: 1 });
      await until(() => watch.ends.length > 0 || watch.created.length > created, 'an answer');
      return watch.ends.length > 0;
    },
    'a token to run out',
    60_000,
  );
  t.true(watch.ends[0] instanceof UnauthenticatedError);
  t.is(watch.canceled.size, 0);
  const again = new WatchRecorder();
  store.openWatch(again).create(1, { target: { key: '/own/k' }, startRevision: 1 });
  await again.untilEvents(1, 1);
});

test('calls whose tokens etcd has forgotten go on under a new one', async (t) => {
  const etcd = await withUsers(t);
  const store = ownStore(t, { hosts: etcd.endpoint, auth: USER });
  await store.connect(CALL);
  await etcdctl(etcd.endpoint, '--user', `root:${ROOT.password}`, 'auth', 'disable');
  await etcdctl(etcd.endpoint, 'auth', 'enable');
  const results = await Promise.all(Array.from({ length: 20 }, () => store.range(read('/own/k'), CALL)));
  t.is(results.length, 20);
  await etcd.restart();
  await store.connect(CALL);
  await store.txn(write('/own/k'), CALL);
});

test('a changed password ends in unauthenticated, not in a loop; a function gives the new one', async (t) => {
  const etcd = await withUsers(t);
  let auth = USER;
  const store = ownStore(t, { hosts: etcd.endpoint, auth: () => auth });
  await store.connect(CALL);
  const root = ['--user', `root:${ROOT.password}`];
  await etcdctl(etcd.endpoint, ...root, 'user', 'delete', 'user');
  await t.throwsAsync(store.range(read('/own/k'), CALL), { instanceOf: UnauthenticatedError });
  await etcdctl(etcd.endpoint, ...root, 'user', 'add', 'user:another-secret');
  await etcdctl(etcd.endpoint, ...root, 'user', 'grant-role', 'user', 'own');
  await t.throwsAsync(store.connect(CALL), { instanceOf: UnauthenticatedError });
  auth = { ...USER, password: 'another-secret' };
  await store.connect(CALL);
  await store.txn(write('/own/k'), CALL);
});

test('users may be given before authentication is switched on, and are used once it is', async (t) => {
  const etcd = await ownEtcd(t);
  const store = ownStore(t, { hosts: etcd.endpoint, auth: ROOT });
  await store.connect(CALL);
  await store.txn(write('/k'), CALL);
  await etcdctl(etcd.endpoint, 'user', 'add', `root:${ROOT.password}`);
  await etcdctl(etcd.endpoint, 'user', 'grant-role', 'root', 'root');
  await etcdctl(etcd.endpoint, 'auth', 'enable');
  await store.txn(write('/k'), CALL);
  t.is((await store.range(read('/k'), CALL)).kvs[0]?.version, 2);
});
