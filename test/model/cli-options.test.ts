import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { connectOptions, type GlobalFlags, givenEndpoints } from '../../src/cli/options.ts';

const flags = (given: Partial<GlobalFlags> = {}): GlobalFlags => ({ timeout: 10, ...given });

function fileWith(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'cli-options-')), 'file');
  writeFileSync(path, text);
  return path;
}

test('without flags and environment the command connects to etcd’s usual port on this host', (t) => {
  t.deepEqual(connectOptions(flags(), {}), { hosts: ['http://127.0.0.1:2379'], connectTimeout: 10 });
});

test('endpoints come from the flag, else from ETCDCTL_ENDPOINTS, else from ETCD_ENDPOINTS, and empty variables do not count', (t) => {
  const env = { ETCDCTL_ENDPOINTS: 'ctl:1,ctl:2', ETCD_ENDPOINTS: 'etcd:1' };
  t.deepEqual(givenEndpoints({ endpoints: ['flag:1'] }, env), ['flag:1']);
  t.deepEqual(givenEndpoints({}, env), ['ctl:1', 'ctl:2']);
  t.deepEqual(givenEndpoints({}, { ...env, ETCDCTL_ENDPOINTS: '' }), ['etcd:1']);
  t.is(givenEndpoints({}, {}), undefined);
});

test('an endpoint without a scheme is http, or https beside certificates or https', (t) => {
  const cacert = fileWith('authority');
  t.deepEqual(connectOptions(flags({ endpoints: ['a:1', 'http://b:2'] }), {}).hosts, ['http://a:1', 'http://b:2']);
  t.deepEqual(connectOptions(flags({ endpoints: ['a:1', 'https://b:2'] }), {}).hosts, ['https://a:1', 'https://b:2']);
  t.deepEqual(connectOptions(flags({ endpoints: ['a:1'], cacert }), {}).hosts, ['https://a:1']);
  t.deepEqual(connectOptions(flags({ endpoints: ['a:1'] }), { ETCDCTL_CACERT: cacert }).hosts, ['https://a:1']);
});

for (const [meaning, endpoint] of [
  ['another scheme', 'unix:///run/etcd'],
  ['no host', 'http://'],
  ['a port that is none', 'a:99999'],
  ['a password in it', 'http://user:secret@a:1'],
  ['a path', 'http://a:1/v3'],
  ['a space', 'a b:1'],
] as const) {
  test(`an endpoint with ${meaning} is wrong usage`, (t) => {
    const error = t.throws(() => connectOptions(flags({ endpoints: [endpoint] }), {}), { name: 'UsageError' });
    t.false(error?.message.includes('secret'));
  });
}

test('an http endpoint with certificates, or beside an https one, is wrong usage', (t) => {
  t.throws(() => connectOptions(flags({ endpoints: ['http://a:1', 'https://b:1'] }), {}), { message: /is http, but/ });
  const cacert = fileWith('authority');
  t.throws(() => connectOptions(flags({ endpoints: ['http://a:1'], cacert }), {}), { message: /is http, but/ });
});

test('certificates are read, by flag before environment, and certificate and key go together', (t) => {
  const [cacert, cert, key, other] = [fileWith('authority'), fileWith('cert'), fileWith('key'), fileWith('other')];
  const env = { ETCDCTL_CACERT: other, ETCDCTL_CERT: cert, ETCDCTL_KEY: key };
  t.deepEqual(connectOptions(flags({ cacert }), env).credentials, {
    rootCertificate: Buffer.from('authority'),
    certChain: Buffer.from('cert'),
    privateKey: Buffer.from('key'),
  });
  t.throws(() => connectOptions(flags({ cert }), {}), { message: /go together/ });
  t.throws(() => connectOptions(flags({ cacert: join(cacert, 'none') }), {}), { message: /cannot read/ });
});

test('a client certificate without an authority trusts the public ones', (t) => {
  const { credentials } = connectOptions(flags({ cert: fileWith('cert'), key: fileWith('key') }), {});
  t.regex(credentials?.rootCertificate.toString() ?? '', /BEGIN CERTIFICATE/);
});

test('the password comes from the file, without its line end, else from the environment', (t) => {
  const env = { ETCDCTL_USER: 'env:a:b', ETCDCTL_PASSWORD: 'secret' };
  const passwordFile = fileWith('p w\n');
  t.deepEqual(connectOptions(flags({ user: 'me', passwordFile }), env).auth, { username: 'me', password: 'p w' });
  t.deepEqual(connectOptions(flags({ user: 'me' }), env).auth, { username: 'me', password: 'secret' });
  t.deepEqual(connectOptions(flags(), env).auth, { username: 'env', password: 'a:b' });
  t.deepEqual(connectOptions(flags(), { ...env, ETCDCTL_USER: 'env' }).auth, { username: 'env', password: 'secret' });
  t.is(connectOptions(flags(), { ETCDCTL_PASSWORD: 'secret' }).auth, undefined);
});

test('a password on the command line, a user without one, and one without a user are wrong usage', (t) => {
  t.throws(() => connectOptions(flags({ user: 'me:secret' }), {}), { name: 'UsageError', message: /--password-file/ });
  t.throws(() => connectOptions(flags({ user: 'me', passwordFile: fileWith('\n') }), {}), { message: /is empty/ });
  t.throws(() => connectOptions(flags({ user: 'me' }), {}), { name: 'UsageError', message: /needs a password/ });
  t.throws(() => connectOptions(flags({ passwordFile: fileWith('p') }), {}), { name: 'UsageError' });
});
