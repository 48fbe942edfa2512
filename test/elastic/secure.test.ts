import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { certificateAuthority } from '../support/certificates.ts';
import { temporaryFolder } from '../support/children.ts';
import { TestElastic } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { freePorts } from '../support/ports.ts';
import { until } from '../support/wait.ts';

const PASSWORD = 'secret';

test('a learner lets nobody log in: a host that knows no other seed says so', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const passwordFile = join(temporaryFolder('password-'), 'password');
  writeFileSync(passwordFile, PASSWORD);
  const flags = ['--user', 'root', '--password-file', passwordFile];
  cluster.access = { auth: { username: 'root', password: PASSWORD } };
  const h1 = await cluster.add({ flags });
  await h1.ready();
  const h2 = await cluster.add({ flags });
  await cluster.settled(1, 'and a learner');
  await etcdctl(h1.clientUrl, 'user', 'add', `root:${PASSWORD}`);
  await etcdctl(h1.clientUrl, 'user', 'grant-role', 'root', 'root');
  await etcdctl(h1.clientUrl, 'auth', 'enable');
  const h3 = await cluster.add({ flags: [...flags, '--start-timeout', '5'], seeds: [h2.clientUrl] });
  t.is(await h3.ended(), 1);
  t.regex(h3.stderr, /is a learner, which lets nobody log in: name a voter among the seeds/);
});

test('hosts speak TLS with each other and with clients, and go on when users and passwords are asked for', async (t) => {
  const authority = certificateAuthority();
  const { ca } = authority;
  const server = authority.issue('server');
  const stranger = certificateAuthority();
  const cluster = new TestElastic(async () => ({ address: '127.0.0.1', scheme: 'https', ports: await freePorts(2) }));
  t.teardown(() => cluster.destroy());
  const passwordFile = join(temporaryFolder('password-'), 'password');
  writeFileSync(passwordFile, PASSWORD);
  const own = ['--cert-file', server.certFile, '--key-file', server.keyFile, '--trusted-ca-file', ca.certFile];
  const peer = ['--peer-cert-file', server.certFile, '--peer-key-file', server.keyFile];
  const trust = ['--peer-trusted-ca-file', ca.certFile, '--client-cert-auth', '--peer-client-cert-auth'];
  const flags = [...own, ...peer, ...trust, '--user', 'root', '--password-file', passwordFile];
  const credentials = { rootCertificate: ca.cert, certChain: server.cert, privateKey: server.key };
  cluster.access = { credentials, auth: { username: 'root', password: PASSWORD } };

  const h1 = await cluster.add({ flags });
  await h1.ready();
  await cluster.add({ flags });
  await cluster.settled(1, 'and a learner');

  const tls = ['--cacert', ca.certFile, '--cert', server.certFile, '--key', server.keyFile];
  const admin = [...tls, '--user', `root:${PASSWORD}`];
  await etcdctl(h1.clientUrl, ...tls, 'user', 'add', `root:${PASSWORD}`);
  await etcdctl(h1.clientUrl, ...tls, 'user', 'grant-role', 'root', 'root');
  await etcdctl(h1.clientUrl, ...tls, 'auth', 'enable');
  await t.throwsAsync(etcdctl(h1.clientUrl, '--cacert', stranger.ca.certFile, 'get', '/a'));

  await cluster.add({ flags });
  const three = await cluster.settled(3, 'with users');
  t.is(three.rows.length, 3);
  await etcdctl(h1.clientUrl, ...admin, 'put', '/kept', 'value');
  const leader = cluster.hosts.find(({ name }) => three.rows.some((row) => row.leader && row.host === name));
  if (!leader) return t.fail();
  await leader.crash();
  cluster.restart(leader, { flags });
  await leader.ready();
  await cluster.settled(3, 'with the leader back');
  t.regex(await etcdctl(leader.clientUrl, ...admin, 'get', '/kept'), /value/);

  const remote = cluster.remote();
  await remote.resize(1);
  await cluster.settled(1, 'and a learner again');
  await until(async () => (await remote.status()).healthy, 'it to be healthy');
});
