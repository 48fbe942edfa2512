import { copyFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { ConnectionError, type ConnectOptions, EtcdEphemeral } from '../../src/index.ts';
import { certificateAuthority, type Pem } from '../support/certificates.ts';
import { type ServerTls, startEtcd } from '../support/etcd-process.ts';
import { see } from '../support/listings.ts';
import { until } from '../support/wait.ts';

async function ownEtcd(t: ExecutionContext, tls: ServerTls) {
  const etcd = await startEtcd({ tls });
  t.teardown(() => etcd.destroy());
  return etcd;
}

async function connect(t: ExecutionContext, options: ConnectOptions) {
  const client = await EtcdEphemeral.connect(options);
  t.teardown(() => client.close());
  return client;
}

const authority = certificateAuthority();
const rootCertificate = authority.ca.cert;
const server = authority.issue('server');
const client = authority.issue('client');
const mutual = { cert: server.certFile, key: server.keyFile, clientCa: authority.ca.certFile };
const shown = ({ cert, key }: Pem) => ({ rootCertificate, certChain: cert, privateKey: key });

/** Rejects at once, however long it might have waited, with words for a person. */
async function refused(t: ExecutionContext, hosts: string, credentials: ConnectOptions['credentials'], words: RegExp) {
  const connecting = EtcdEphemeral.connect({ hosts, credentials, connectTimeout: Number.POSITIVE_INFINITY });
  const error = await t.throwsAsync(connecting, { instanceOf: ConnectionError, code: 'CONNECTION', message: words });
  t.false((error as ConnectionError).retryable);
  t.true(error?.message.includes(hosts), 'it names the endpoint');
}

test('a server’s certificate of another CA, that has expired, or is for another name, is refused by its own words (A3)', async (t) => {
  const tls = ({ certFile: cert, keyFile: key }: Pem): ServerTls => ({ cert, key });
  const good = await ownEtcd(t, tls(server));
  await refused(t, good.endpoint, { rootCertificate: certificateAuthority().ca.cert }, /check the CA/);
  await refused(t, good.endpoint, undefined, /check the CA/);
  const expired = await ownEtcd(t, tls(authority.issue('expired', undefined, -1)));
  await refused(t, expired.endpoint, { rootCertificate }, /its certificate has expired.*renew it/);
  const elsewhere = await ownEtcd(t, tls(authority.issue('elsewhere', 'DNS:elsewhere')));
  await refused(t, elsewhere.endpoint, { rootCertificate }, /is for other names: connect by one of those/);
});

test('mutual TLS lets in whom the CA signed, and tells others that their certificate is missing, strange or expired (A3)', async (t) => {
  const { endpoint: hosts } = await ownEtcd(t, mutual);
  const own = await connect(t, { hosts, credentials: shown(client) });
  await own.addKey('/svc/a', 'v');
  await see(t, own.list('/svc', { watch: true })).untilNames('a');
  // Older versions of etcd say "bad certificate" of each.
  await refused(t, hosts, { rootCertificate }, /was shown none: give credentials\.certChain/);
  const stranger = certificateAuthority().issue('stranger');
  await refused(t, hosts, shown(stranger), /did not sign our client certificate|refuses our client certificate/);
  const expired = authority.issue('expired-client', undefined, -1);
  await refused(t, hosts, shown(expired), /our client certificate has expired|refuses our client certificate/);
});

test('a client goes on when every certificate is replaced, its CA too, and etcd starts again with the new ones (A3)', async (t) => {
  const [files, next] = [authority.issue('rotated'), certificateAuthority()];
  const etcd = await ownEtcd(t, { cert: files.certFile, key: files.keyFile });
  let trusted = rootCertificate;
  const credentials = () => ({ rootCertificate: trusted });
  const own = await connect(t, { hosts: etcd.endpoint, credentials, ttl: 5 });
  const registrations = [await own.addKey('/svc/a', 'v'), await own.addKey('/svc/b', 'v', { heartbeat: 'put' })];
  const seen = see(t, own.list('/svc', { watch: true }));
  await seen.untilNames('a b');
  await etcd.stop();
  const { certFile, keyFile } = next.issue('rotated');
  copyFileSync(certFile, files.certFile);
  copyFileSync(keyFile, files.keyFile);
  trusted = next.ca.cert;
  await etcd.start();
  await until(() => own.state === 'connected', 'the connection');
  await until(() => registrations.every(({ state }) => state === 'registered'), 'both registrations');
  await own.addKey('/svc/c', 'v');
  t.is((await seen.untilNames('a b c')).status, 'live');
});
