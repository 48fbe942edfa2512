import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { EtcdEphemeral, InvalidOptionError, type RegistrationState } from '../../src/index.ts';
import { certificateAuthority } from '../support/certificates.ts';
import { startClient } from '../support/client-process.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { see } from '../support/listings.ts';
import { connectionsTo } from '../support/ports.ts';
import { startProxy } from '../support/proxy.ts';
import { realWorld, Space } from '../support/space.ts';
import { until } from '../support/wait.ts';

let etcd: EtcdProcess;
test.before(async () => {
  etcd = await startEtcd();
});
test.after.always(() => etcd?.destroy());

const open = (t: ExecutionContext) => Space.open(t, realWorld(etcd));

test.serial(
  'a busy loop of 5 s under ttl 2 costs no registration where a worker stands by: no event, nothing lost (R1, R5)',
  async (t) => {
    const space = await open(t);
    const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2, stallLimit: 20 };
    const it = startClient(t, { options, keys: { '/d/k': 'v', '/d/l': 'v' } });
    await it.said('ready');
    const before = await space.keys('/d/');
    it.block(5_000);
    await it.said('unblocked');
    t.deepEqual(await space.keys('/d/'), before);
    t.deepEqual(
      it.lines.filter((line) => line.startsWith('state')),
      ['state /d/k registered', 'state /d/l registered'],
    );
  },
);

test.serial(
  'a loop that is stuck for longer than stallLimit loses its registration, and has it back when it goes on (R4)',
  async (t) => {
    const space = await open(t);
    const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2, stallLimit: 3 };
    const it = startClient(t, { options, keys: { '/d/k': 'v' } });
    await it.said('ready');
    const client = await space.connect();
    const seen = see(t, client.list('/d', { watch: true, via: 'direct' }));
    await seen.untilNames('k');
    it.block(7_500);
    await seen.untilNames('');
    t.false(it.lines.includes('unblocked'), 'it is still stuck');
    await seen.untilNames('k');
    await it.said('unblocked');
    await it.said('state /d/k lost');
    await until(() => it.lines.at(-1) === 'state /d/k registered', 'its word');
  },
);

test.serial(
  'a key that an operator deletes while the loop stands still is lost on waking, and is made again (R1, R4)',
  async (t) => {
    const space = await open(t);
    const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2, stallLimit: 20 };
    const it = startClient(t, { options, keys: { '/d/k': 'v', '/d/kept': 'v' } });
    await it.said('ready');
    it.block(4_000);
    await space.remove('/d/k');
    await it.said('unblocked');
    await it.said('state /d/k lost');
    await until(() => it.lines.at(-1) === 'state /d/k registered', 'its return');
    t.truthy(await space.key('/d/k'));
    t.deepEqual(
      it.lines.filter((line) => line.startsWith('state /d/kept')),
      ['state /d/kept registered'],
    );
  },
);

test.serial('a revoked lease that the worker finds gone is made anew on waking (R4)', async (t) => {
  const space = await open(t);
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2, stallLimit: 20 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' } });
  await it.said('ready');
  const lease = (await space.key('/d/k'))?.lease ?? '';
  it.block(3_000);
  await space.revoke(lease);
  await it.said('unblocked');
  await until(() => it.lines.at(-1) === 'state /d/k registered', 'its return');
  t.not((await space.key('/d/k'))?.lease, lease);
});

const threads = () => Number(/Threads:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);

test.serial(
  'the worker ends with its client and when it cannot connect, and keeps no process alive (S2, S3)',
  async (t) => {
    const space = await open(t);
    const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2, stallLimit: 20 };
    const it = startClient(t, { options, keys: { '/d/k': 'v' } });
    await it.said('ready');
    it.kill('SIGTERM');
    t.is(await it.exited, 0);
    const before = threads();
    const client = await EtcdEphemeral.connect(options);
    t.true(threads() > before);
    await client.close();
    await t.throwsAsync(EtcdEphemeral.connect({ ...options, hosts: 'http://127.0.0.1:1', connectTimeout: 0.2 }));
    await until(() => threads() <= before, 'the threads to end');
  },
);

test.serial(
  'hosts that only a function knows are passed to the worker, which renews when the own way is cut (R5)',
  async (t) => {
    const space = await open(t);
    const [own, other] = [await startProxy(etcd.endpoint), await startProxy(etcd.endpoint)];
    t.teardown(() => Promise.all([own.close(), other.close()]));
    let hosts = [own.endpoint];
    const client = await EtcdEphemeral.connect({
      hosts: () => hosts,
      namespace: space.namespace,
      ttl: 2,
      stallLimit: 5,
    });
    t.teardown(() => client.close());
    const registration = await client.addKey('/d/k', 'v');
    await until(() => own.open === 2, 'the worker to be connected');
    hosts = [other.endpoint];
    own.refuse(true);
    own.cut();
    await until(() => other.open === 2, 'both to be connected elsewhere');
    t.is(registration.state, 'registered');
  },
);

test.serial('the worker is let in where a certificate, a user and a password are asked for (R5)', async (t) => {
  const authority = certificateAuthority();
  const { certFile, keyFile } = authority.issue('server');
  const clientPem = authority.issue('client');
  const tls = { cert: certFile, key: keyFile, clientCa: authority.ca.certFile };
  const secured = await startEtcd({ tls });
  t.teardown(() => secured.destroy());
  const flags = ['--cacert', authority.ca.certFile, '--cert', clientPem.certFile, '--key', clientPem.keyFile];
  const ctl = (...args: string[]) => etcdctl(secured.endpoint, ...flags, ...args);
  await ctl('user', 'add', 'root:root-secret');
  await ctl('user', 'grant-role', 'root', 'root');
  await ctl('auth', 'enable');
  const client = await EtcdEphemeral.connect({
    hosts: secured.endpoint,
    credentials: () => ({
      rootCertificate: authority.ca.cert,
      certChain: clientPem.cert,
      privateKey: clientPem.key,
    }),
    auth: () => ({ username: 'root', password: 'root-secret' }),
    ttl: 2,
    stallLimit: 20,
  });
  t.teardown(() => client.close());
  const registration = await client.addKey('/d/k', 'v');
  const states: RegistrationState[] = [];
  registration.state$.subscribe((state) => states.push(state));
  await until(() => connectionsTo(secured.clientPort) === 2, 'the worker to be connected');
  const before = (await client.list('/d', { values: true })).entries.get('k')?.created;
  // This very loop, for longer than the ttl.
  for (const endMs = performance.now() + 4_000; performance.now() < endMs; );
  t.is((await client.list('/d', { values: true })).entries.get('k')?.created, before);
  t.deepEqual(states, ['registered']);
});

test('stallLimit is refused where it would be of no use', async (t) => {
  for (const stallLimit of [0, -1, 2, Number.NaN, Number.POSITIVE_INFINITY, '20']) {
    const connecting = EtcdEphemeral.connect({ hosts: etcd.endpoint, ttl: 2, stallLimit: stallLimit as number });
    await t.throwsAsync(connecting, {
      instanceOf: InvalidOptionError,
      message: /stallLimit must be .* above ttl \(2\)/,
    });
  }
});
