import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { startClient } from '../support/client-process.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { see } from '../support/listings.ts';
import { realWorld, Space } from '../support/space.ts';
import { until } from '../support/wait.ts';

let etcd: EtcdProcess;
test.before(async () => {
  etcd = await startEtcd();
});
test.after.always(() => etcd?.destroy());

const world = () => realWorld(etcd);
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

test('a process that is killed goes from every list, also when it was the master (R2, M3)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2 };
  const victim = startClient(t, { options, keys: { '/d/victim': 'v' }, watch: ['/d'] });
  await victim.said('ready');
  await until(() => space.key('/_watcherDir/d//'), 'the victim to be master');
  const client = await space.connect();
  await client.addKey('/d/alive', 'v');
  const [mirror, direct] = [
    see(t, client.list('/d', { watch: true })),
    see(t, client.list('/d', { watch: true, via: 'direct' })),
  ];
  await mirror.untilNames('alive victim');
  victim.kill('SIGKILL');
  await direct.untilNames('alive');
  await mirror.untilNames('alive');
  t.is((await space.keys('/_watcherLock/')).length, 1);
  await client.addKey('/d/next', 'v');
  await mirror.untilNames('alive next');
});

test('a process that gets SIGTERM and closes is gone before it exits', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 1_000 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' }, watch: ['/d'] });
  await it.said('list /d live k');
  await it.said('ready');
  it.kill('SIGTERM');
  await it.exited;
  t.deepEqual(
    (await space.keys()).filter(({ lease }) => lease !== '0'),
    [],
  );
});

test('a frozen process goes, and is back, once, when it thaws (R4)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' }, watch: ['/d'] });
  await it.said('ready');
  const client = await space.connect();
  const seen = see(t, client.list('/d', { watch: true, via: 'direct' }));
  await seen.untilNames('k');
  it.kill('SIGSTOP');
  await seen.untilNames('');
  await client.addKey('/d/other', 'v');
  it.kill('SIGCONT');
  await seen.untilNames('k other');
  await it.said('state /d/k lost');
  // What it says of its list and of its key comes in either order.
  const last = (about: string) => it.lines.filter((line) => line.startsWith(about)).at(-1);
  await until(() => last('list') === 'list /d live k other', 'its own list to be right again');
  await until(() => last('state') === 'state /d/k registered', 'its word');
  t.deepEqual(
    seen.listings.map(({ children }) => children.join(' ')),
    ['k', '', 'other', 'k other'],
  );
});

test('a process whose event loop was blocked for longer than the ttl is back when it goes on (R4)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' } });
  await it.said('ready');
  const client = await space.connect();
  const seen = see(t, client.list('/d', { watch: true, via: 'direct' }));
  await seen.untilNames('k');
  it.block(4_000);
  await seen.untilNames('');
  await seen.untilNames('k');
  await it.said('unblocked');
  t.is(seen.listings.length, 3);
});

test('a short block of the event loop costs nothing (R6)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 4 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' } });
  await it.said('ready');
  const before = await space.key('/d/k');
  it.block(1_500);
  await it.said('unblocked');
  t.deepEqual(await space.key('/d/k'), before);
  t.is(it.lines.filter((line) => line.endsWith(' lost')).length, 0);
});

test('a wall clock that is set an hour forward, then two back, costs no registration (R1, R5)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 3 };
  const it = startClient(t, { options, keys: { '/d/k': 'v' }, watch: ['/d'] });
  await it.said('ready');
  const before = await space.key('/d/k');
  for (const offsetMs of [3_600_000, -3_600_000]) {
    it.setWallClock(offsetMs);
    // Longer than a lease lives that nobody renews.
    await sleep(4_000);
    t.deepEqual(await space.key('/d/k'), before);
  }
  await space.put('/d/other', 'v');
  await it.said('list /d live k other');
  t.deepEqual(
    it.lines.filter((line) => line.startsWith('state') || line.includes('stale')),
    ['state /d/k registered'],
  );
  it.kill('SIGTERM');
  t.is(await it.exited, 0);
  t.is(await space.key('/d/k'), undefined);
});

test('a process that is restarted at once under its old name replaces its dead self (R3)', async (t) => {
  const space = await Space.open(t, world());
  const options = { hosts: etcd.endpoint, namespace: space.namespace, ttl: 2 };
  const first = startClient(t, { options, keys: { '/d/k': 'host:1' } });
  await first.said('ready');
  first.kill('SIGKILL');
  await first.exited;
  const second = startClient(t, { options, keys: { '/d/k': 'host:2' } });
  await second.said('ready');
  t.is(text((await space.key('/d/k'))?.value), 'host:2');
});

test('what others register with etcdctl, on a lease of their own, is listed, and below a directory nothing else is', async (t) => {
  const space = await Space.open(t, world());
  const client = await space.connect();
  const seen = see(t, client.list('/d', { watch: true, values: true, missing: 'wait' }));
  const granted = await etcdctl(etcd.endpoint, 'lease', 'grant', '60');
  const lease = /lease ([0-9a-f]+)/.exec(granted)?.[1] ?? '';
  await etcdctl(etcd.endpoint, 'put', '--lease', lease, `${space.namespace}/d/theirs`, 'v');
  await client.addDir('/d');
  await client.addKey('/d/ours', 'w');
  await seen.untilNames('ours theirs');
  const stored = await etcdctl(etcd.endpoint, 'get', '--prefix', `${space.namespace}/d`);
  t.is(stored, `${space.namespace}/d/ours\nw\n${space.namespace}/d/theirs\nv\n`);
  const shadow = await until(async () => {
    const keys = await etcdctl(
      etcd.endpoint,
      'get',
      '--prefix',
      `${space.namespace}/_watcherValues/d//`,
      '--keys-only',
    );
    return keys.includes('//ours') && keys.includes('//theirs') && keys;
  }, 'the plain shadow, for any language');
  t.true(shadow.includes('/_watcherValues/d//ours'));
  await etcdctl(etcd.endpoint, 'lease', 'revoke', lease);
  await seen.untilNames('ours');
});

test('keys of others that are no UTF-8 are not listed, and hinder nobody', async (t) => {
  const space = await Space.open(t, world());
  const client = await space.connect();
  const mirror = see(t, client.list('/d', { watch: true, missing: 'wait' }));
  const direct = see(t, client.list('/d', { watch: true, missing: 'wait', via: 'direct' }));
  await mirror.untilNames('');
  const bytes = Buffer.concat([Buffer.from(`${space.namespace}/d/x`), Buffer.from([0xff, 0xfe])]);
  const body = JSON.stringify({ key: bytes.toString('base64'), value: '' });
  const put = await fetch(`${etcd.endpoint}/v3/kv/put`, { method: 'POST', body });
  t.true(put.ok);
  await client.addKey('/d/k', 'v');
  await mirror.untilNames('k');
  await direct.untilNames('k');
  t.deepEqual((await client.list('/d')).children, ['k']);
});
