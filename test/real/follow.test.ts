import test from 'ava';
import { EtcdEphemeral, InvalidOptionError } from '../../src/index.ts';
import { startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/wait.ts';

test('a client follows the endpoints that its cluster publishes, and goes on when all it was given are gone', async (t) => {
  const etcd = await startEtcd();
  const former = await startProxy(etcd.endpoint);
  const later = await startProxy(etcd.endpoint);
  let listings = 0;
  const stats = {
    bumpSum: (name: string, n: number) => {
      if (name === 'ephemeral.etcd.list.listings') listings += n;
    },
    bumpTime: () => ({ end: () => {} }),
  };
  const client = await EtcdEphemeral.connect({ hosts: former.endpoint, ttl: 2, follow: '/_elastic', stats });
  t.teardown(async () => {
    await client.close();
    await Promise.all([former.close(), later.close()]);
    await etcd.destroy();
  });
  const registration = await client.addKey('/a/b', 'v');
  const states: string[] = [];
  registration.state$.subscribe((state) => states.push(state));
  await etcdctl(etcd.endpoint, 'put', '/_elastic/endpoints/h1', `${later.endpoint},${later.endpoint}`);
  // The first listing was empty.
  await until(() => listings >= 2, 'the client to have heard of it');
  await former.close();
  await until(() => later.accepted > 0, 'a connection by the published endpoint');
  t.is(await client.get('/a/b'), 'v');
  await etcdctl(etcd.endpoint, 'del', '/_elastic/endpoints/h1');
  t.is(await client.get('/a/b'), 'v');
  t.is(registration.state, 'registered');
});

test('follow is a namespace', async (t) => {
  await t.throwsAsync(EtcdEphemeral.connect({ follow: 7 as unknown as string }), { instanceOf: InvalidOptionError });
});
