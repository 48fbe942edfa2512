import test from 'ava';
import { CHANGE_PATIENCE_MS, TestElastic, type TestHost } from '../support/elastic.ts';
import { startEtcd } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { until } from '../support/wait.ts';
import { Writer } from '../support/writer.ts';

/** The longest gaps of one stretch, here and at an etcd to which nothing happened: what both have in common is the machine's doing. */
function gaps(writer: Writer, control: Writer): string {
  return `${writer.takeGap()} ms (${control.takeGap()} ms at an etcd to which nothing happened)`;
}

test('no acknowledged write is lost while the size goes 1, 3, 5, 3, 1, leaders move, leave, stop and are killed', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const etcd = await startEtcd();
  t.teardown(() => etcd.destroy());
  const h1 = await cluster.add({ flags: ['--ideal-cluster-size', '1'] });
  await h1.ready();
  for (let count = 2; count <= 5; count++) await cluster.add();
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  const remote = cluster.remote();
  const clientUrls = () => cluster.hosts.map(({ clientUrl }) => clientUrl);
  await cluster.settled(1);
  const writer = new Writer(clientUrls);
  const control = new Writer(() => [etcd.endpoint]);
  t.teardown(() => Promise.all([writer.stop(), control.stop()]));

  const leaderOf = async (size: number) => {
    const leader = (await cluster.settled(size)).rows.find((row) => row.leader);
    const host = cluster.hosts.find(({ name }) => name === leader?.host);
    if (!host) throw new Error('no host leads');
    gaps(writer, control);
    return host;
  };
  const anotherLeads = (host: TestHost) =>
    until(
      async () => (await remote.status()).rows.some((row) => row.leader && row.host !== host.name),
      `another than ${host.name} to lead`,
      CHANGE_PATIENCE_MS,
    );
  const resize = async (size: number) => {
    gaps(writer, control);
    await remote.resize(size);
    await cluster.settled(size);
    t.log(`to ${size}: ${gaps(writer, control)}`);
  };
  const restart = async (host: TestHost) => {
    cluster.restart(host, { seeds: clientUrls() });
    await host.ready();
  };

  await resize(3);
  const first = await leaderOf(3);
  const other = (await cluster.settled(3)).rows.find(({ role, leader }) => role === 'voter' && !leader);
  gaps(writer, control);
  await etcdctl(first.clientUrl, 'move-leader', other?.memberId ?? '');
  await anotherLeads(first);
  t.log(`leader moved by hand: ${gaps(writer, control)}`);

  const leaver = await leaderOf(3);
  leaver.signal('SIGINT');
  await leaver.ended();
  await anotherLeads(leaver);
  t.log(`leader left: ${gaps(writer, control)}`);
  await restart(leaver);

  const stopped = await leaderOf(3);
  await stopped.stop();
  await anotherLeads(stopped);
  t.log(`leader stopped: ${gaps(writer, control)}`);
  await restart(stopped);

  const killed = await leaderOf(3);
  await killed.crash();
  await anotherLeads(killed);
  t.log(`leader killed, which is etcd's own election: ${gaps(writer, control)}`);
  await cluster.settled(3, 'with a replacement');
  t.log(`replaced: ${gaps(writer, control)}`);
  await restart(killed);

  await resize(5);
  const again = await leaderOf(5);
  await again.crash();
  await anotherLeads(again);
  t.log(`one of five killed: ${gaps(writer, control)}`);
  await restart(again);
  await cluster.settled(5, 'with the killed one back');
  await resize(3);
  await resize(1);
  await Promise.all([writer.stop(), control.stop()]);

  const lost = await writer.lost();
  t.log(`${writer.acknowledged.length} writes acknowledged, ${lost.length} lost`);
  t.deepEqual(lost, []);
  t.true(writer.acknowledged.length > 1_000);
});
