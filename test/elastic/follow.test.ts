import test from 'ava';
import { ElasticCluster } from '../../src/elastic.ts';
import { EtcdEphemeral } from '../../src/index.ts';
import { temporaryFolder } from '../support/children.ts';
import { CHANGE_PATIENCE_MS, TestElastic } from '../support/elastic.ts';
import { until } from '../support/wait.ts';

test.serial('a client that follows goes on when all three members that it was given have been replaced', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  await (await cluster.add()).ready();
  await cluster.add();
  await cluster.add();
  await cluster.settled(3, 'at first');
  const originals = [...cluster.hosts];
  const client = await EtcdEphemeral.connect({
    hosts: originals.map((host) => host.clientUrl),
    follow: '/_elastic',
    ttl: 5,
  });
  t.teardown(() => client.close());
  const inside = new ElasticCluster({
    hostname: 'c1',
    noServer: true,
    seeds: originals.map((host) => host.clientUrl),
    dataDir: temporaryFolder('client-'),
  });
  t.teardown(() => inside.stop());
  await inside.start();
  await client.addDir('/services', { exclusive: false });
  const registration = await client.addKey('/services/one', 'v');
  const listed = new Set<string>();
  const following = client.list('/services', { watch: true, missing: 'wait' }).subscribe(({ children }) => {
    listed.clear();
    for (const child of children) listed.add(child);
  });
  t.teardown(() => following.unsubscribe());

  for (const original of originals) {
    await cluster.add({ seeds: cluster.hosts.filter((host) => host.isRunning).map((host) => host.clientUrl) });
    await original.crash();
    await cluster.settled(3, `after ${original.name} was replaced`);
  }
  const status = await cluster.settled(3);
  t.deepEqual([...status.wanted.voters].sort(), ['h4', 'h5', 'h6']);

  await until(() => registration.state === 'registered', 'the registration to stand', CHANGE_PATIENCE_MS);
  await client.addKey('/services/two', 'v');
  await until(() => listed.has('two') && listed.has('one'), 'the list to show what came since');
  t.is(await client.get('/services/one'), 'v');
  t.is(await inside.ephemeral.get('/services/two'), 'v');
  await inside.ephemeral.addKey('/services/three', 'v');
  await until(() => listed.has('three'), 'the list to show what the cluster’s own client added');
  // Nothing of what it was given is left to have answered.
  t.true(originals.every((host) => !host.isRunning && host.etcdPid === undefined));
});

test.serial('a client that follows has left a member before that is removed, and its calls go on', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const flags = ['--min-voters', '1'];
  await (await cluster.add({ flags })).ready();
  const h2 = await cluster.add({ flags });
  await cluster.add({ flags });
  await cluster.settled(3);
  const heard: string[] = [];
  const logger = {
    info: (text: string) => heard.push(text),
    warn: (text: string) => heard.push(text),
    error: () => {},
  };
  const client = await EtcdEphemeral.connect({ hosts: h2.clientUrl, follow: '/_elastic', ttl: 5, logger });
  t.teardown(() => client.close());
  const registration = await client.addKey('/services/one', '0');
  const states: string[] = [];
  registration.state$.subscribe((state) => states.push(state));
  h2.signal('SIGINT');
  const ended = h2.ended();
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  for (let count = 1; !isOver; count++) await registration.update(String(count));
  t.is(await ended, 130);
  t.regex(heard.join('\n'), new RegExp(`lists ${h2.clientUrl} no more`));
  t.notRegex(heard.join('\n'), /refused|dropped|unanswered|answer/);
  t.false(states.includes('lost'));
});
