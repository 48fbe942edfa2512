import test from 'ava';
import { TestElastic } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';

const SIZE_KEY = '/_elastic/chooser/dynamicsize/idealclustersize';

test('five hosts, told with etcdctl to be three and then five, are three and five started voters', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add();
  const h2 = await cluster.add({ seeds: [h1.clientUrl] });
  await cluster.add({ seeds: [h1.clientUrl] });
  await h1.ready();
  await etcdctl(h1.clientUrl, 'put', SIZE_KEY, '3');
  await cluster.add({ seeds: [h1.clientUrl] });
  await cluster.add({ seeds: [h1.clientUrl] });
  await Promise.all(cluster.hosts.map((host) => host.ready()));

  const three = await cluster.settled(3);
  t.is(three.canStand, 1);
  t.deepEqual(await startedVoters(h1.clientUrl), ['h1', three.wanted.voters[1], three.wanted.voters[2]].sort());
  t.is(three.rows.length, 5);

  await etcdctl(h2.clientUrl, 'put', SIZE_KEY, '5');
  await cluster.settled(5);
  t.deepEqual(await startedVoters(h2.clientUrl), ['h1', 'h2', 'h3', 'h4', 'h5']);

  for (const host of cluster.hosts) host.signal('SIGTERM');
  t.deepEqual(await Promise.all(cluster.hosts.map((host) => host.ended())), [143, 143, 143, 143, 143]);
  t.deepEqual(
    cluster.hosts.map((host) => host.etcdPid),
    [undefined, undefined, undefined, undefined, undefined],
  );
});

async function startedVoters(endpoint: string): Promise<(string | undefined)[]> {
  const lines = (await etcdctl(endpoint, 'member', 'list')).trim().split('\n');
  return lines
    .map((line) => line.split(', '))
    .filter(([, state, , , , isLearner]) => state === 'started' && isLearner === 'false')
    .map(([, , name]) => name)
    .sort();
}
