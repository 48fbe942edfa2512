import test, { type ExecutionContext } from 'ava';
import { oneChangeAtATime } from '../support/change-history.ts';
import { CHANGE_PATIENCE_MS, TestElastic, type TestHost } from '../support/elastic.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { networkFault, TestNetwork } from '../support/network.ts';
import { until } from '../support/wait.ts';
import { Writer } from '../support/writer.ts';

const fault = networkFault();
if (fault !== undefined) console.warn(`partitions are NOT tested here: no network namespaces (${fault})`);
const partition = fault === undefined ? test.serial : test.serial.skip;

interface Setting {
  readonly cluster: TestElastic;
  readonly writer: Writer;
  cut(host: TestHost): void;
  heal(host: TestHost): void;
  host(name: string | undefined): TestHost;
}

/** Three voters, each on a network of its own, and a writer that knows them all. */
async function setUp(t: ExecutionContext, hosts = 3): Promise<Setting> {
  const network = new TestNetwork();
  t.teardown(() => network.destroy());
  const cluster = new TestElastic((number) => network.place(number));
  t.teardown(() => cluster.destroy());
  const flags = ['--ideal-cluster-size', '3'];
  await (await cluster.add({ flags: [...flags, '--bootstrap'] })).ready();
  for (let count = 2; count <= hosts; count++) await cluster.add({ flags });
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  await cluster.settled(3, 'at first');
  const writer = new Writer(() => cluster.hosts.map(({ clientUrl }) => clientUrl));
  t.teardown(() => writer.stop());
  const number = (host: TestHost) => cluster.hosts.indexOf(host) + 1;
  return {
    cluster,
    writer,
    cut: (host) => network.cut(number(host)),
    heal: (host) => network.heal(number(host)),
    host: (name) => {
      const found = cluster.hosts.find((host) => host.name === name);
      if (!found) throw new Error(`there is no host ${name}`);
      return found;
    },
  };
}

/** After one more write than there are now: those that were under way when something happened are no proof. */
async function writesGoOn({ writer }: Setting): Promise<void> {
  const before = writer.acknowledged.length;
  await until(() => writer.acknowledged.length > before + 10, 'writes to be acknowledged', CHANGE_PATIENCE_MS);
}

async function nothingIsLost(t: ExecutionContext, { writer }: Setting): Promise<void> {
  await writer.stop();
  t.deepEqual(await writer.lost(), []);
  t.log(`${writer.acknowledged.length} writes acknowledged, none lost; the longest gap was ${writer.takeGap()} ms`);
}

partition('a leader that is cut off: another leads, no change is made, and it comes back as what it was', async (t) => {
  const setting = await setUp(t);
  const { cluster } = setting;
  const before = await cluster.settled(3);
  const leader = setting.host(before.rows.find((row) => row.leader)?.host);
  setting.cut(leader);
  const remote = cluster.remote();
  const during = await until(
    async () => {
      const status = await remote.status();
      const isReported = status.blocked.some(({ what }) => what.includes(`${leader.name} is dead and stays`));
      return status.quorum && isReported && status;
    },
    'the loss to be seen',
    CHANGE_PATIENCE_MS,
  );
  t.not(during.rows.find((row) => row.leader)?.host, leader.name);
  t.is(during.canStand, 0);
  await writesGoOn(setting);
  setting.heal(leader);
  const after = await cluster.settled(3, 'again');
  t.deepEqual(
    after.rows.map(({ host, memberId }) => `${host} ${memberId}`),
    before.rows.map(({ host, memberId }) => `${host} ${memberId}`),
  );
  await writesGoOn(setting);
  await oneChangeAtATime(t, setting.cluster);
  await nothingIsLost(t, setting);
});

partition('a follower that is cut off is replaced by the spare, and comes back as the spare', async (t) => {
  const setting = await setUp(t, 4);
  const { cluster } = setting;
  const before = await cluster.settled(3);
  const follower = setting.host(before.rows.find(({ role, leader }) => role === 'voter' && !leader)?.host);
  const remote = cluster.remote();
  setting.cut(follower);
  const replaced = await until(
    async () => {
      const { rows } = await remote.status();
      const voters = rows.filter(({ role }) => role === 'voter').map(({ host }) => host);
      return !rows.some(({ host, role }) => host === follower.name && role !== 'client') && voters.length === 3 && rows;
    },
    'the spare to vote in its place',
    CHANGE_PATIENCE_MS,
  );
  t.false(replaced.some(({ host, role }) => host === follower.name && role === 'voter'));
  await writesGoOn(setting);
  setting.heal(follower);
  await until(
    async () => {
      const { rows } = await cluster.settled(3);
      return rows.some(({ host, role }) => host === follower.name && role === 'learner');
    },
    'it to be the spare',
    CHANGE_PATIENCE_MS,
  );
  t.true(
    (await oneChangeAtATime(t, setting.cluster)).some(({ cause, host }) => cause === 'dead' && host === follower.name),
  );
  await nothingIsLost(t, setting);
});

partition('a controller that is cut off in the middle of a change: the next one ends it, and it heals', async (t) => {
  const setting = await setUp(t, 4);
  const { cluster } = setting;
  const before = await cluster.settled(3);
  const controller = setting.host(before.controller);
  const other = before.rows.find(({ host, role }) => role === 'voter' && host !== controller.name);
  const leader = setting.host(before.rows.find((row) => row.leader)?.host);
  if (leader === controller) await etcdctl(leader.clientUrl, 'move-leader', other?.memberId ?? '');
  const remote = cluster.remote();
  await remote.resize(1);
  setting.cut(controller);
  const during = await until(
    async () => {
      const status = await remote.status();
      return status.quorum && status.controller !== controller.name && status;
    },
    'another controller',
    CHANGE_PATIENCE_MS,
  );
  t.not(during.controller, controller.name);
  await writesGoOn(setting);
  setting.heal(controller);
  await cluster.settled(1, 'and a learner');
  await writesGoOn(setting);
  await oneChangeAtATime(t, setting.cluster);
  await nothingIsLost(t, setting);
});
