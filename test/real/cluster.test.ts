import test, { type ExecutionContext } from 'ava';
import { type ConnectOptions, EtcdEphemeral, type Registration, type RegistrationState } from '../../src/index.ts';
import { type EtcdCluster, type EtcdProcess, startCluster } from '../support/etcd-process.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { see } from '../support/listings.ts';
import { connectionsTo } from '../support/ports.ts';
import { until } from '../support/wait.ts';

async function ownCluster(t: ExecutionContext): Promise<EtcdCluster> {
  const cluster = await startCluster(3);
  t.teardown(() => cluster.destroy());
  return cluster;
}

async function connect(t: ExecutionContext, hosts: readonly string[], options: ConnectOptions = {}) {
  const client = await EtcdEphemeral.connect({ hosts, ...options });
  t.teardown(() => client.close());
  return client;
}

function statesOf(registration: Registration): RegistrationState[] {
  const told: RegistrationState[] = [];
  registration.state$.subscribe((state) => told.push(state));
  return told;
}

/** Some other member than this one. */
function another(cluster: EtcdCluster, not: EtcdProcess): EtcdProcess {
  return cluster.members.find((member) => member !== not) as EtcdProcess;
}

test("a leader's death loses no registration at ttl 10, and lists go on (R6)", async (t) => {
  const cluster = await ownCluster(t);
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(t, cluster.endpoints, { ttl: 10 })));
  const registrations = await Promise.all(clients.map((client, i) => client.addKey(`/d/${i}`, 'v')));
  const lists = clients.map((client) => see(t, client.list('/d', { watch: true })));
  for (const seen of lists) await seen.untilNames('0 1 2 3 4');
  const states = registrations.map(statesOf);
  const leader = await cluster.leader();
  const { endpoint } = another(cluster, leader);
  const stored = async () => JSON.parse(await etcdctl(endpoint, 'get', '--prefix', '/d/', '-w', 'json')).kvs as unknown;
  const before = await stored();
  await leader.kill();
  await cluster.leader();
  for (const client of clients) await until(() => client.state === 'connected', 'each client');
  t.deepEqual(await until(stored, 'the keys'), before);
  await clients[0]?.addKey('/d/new', 'v');
  for (const seen of lists) await seen.untilNames('0 1 2 3 4 new');
  t.deepEqual(states.flat(), Array(5).fill('registered'));
  t.true(lists.every(({ listings }) => listings.every(({ children }) => children.length >= 5)));
});

test('a member that stands still is left for another, and as it goes on it brings no older value back (R3)', async (t) => {
  const cluster = await ownCluster(t);
  const client = await connect(t, cluster.endpoints, { ttl: 5 });
  const registration = await client.addKey('/d/k', '0');
  const removed = await client.addKey('/d/removed', 'v');
  const states = statesOf(registration);
  const leader = await cluster.leader();
  const used = cluster.members.find((member) => connectionsTo(member.clientPort) > 0) as EtcdProcess;
  const { endpoint } = another(cluster, used);
  if (used === leader) await etcdctl(used.endpoint, 'move-leader', await memberId(another(cluster, used)));
  used.pause();
  const updates = [registration.update('1'), registration.update('2'), removed.remove()];
  await Promise.all(updates.slice(0, 2));
  t.is((await etcdctl(endpoint, 'get', '/d/k', '--print-value-only')).trim(), '2');
  await until(async () => (await etcdctl(endpoint, 'get', '/d/removed')) === '', 'the removal');
  used.resume();
  await until(
    async () => (await etcdctl(used.endpoint, 'get', '/d/k', '--print-value-only')).trim() === '2',
    'the member',
  );
  // A round of verification, which would find what came in late.
  await etcdctl(used.endpoint, 'put', '/probe', '');
  t.is((await etcdctl(endpoint, 'get', '/d/k', '--print-value-only')).trim(), '2');
  t.is(await etcdctl(endpoint, 'get', '/d/removed'), '');
  t.false(states.includes('lost'));
});

/** As etcdctl takes it. */
async function memberId(member: EtcdProcess): Promise<string> {
  const list = await etcdctl(member.endpoint, 'member', 'list');
  const line = list.split('\n').find((entry) => entry.includes(`:${member.clientPort}`));
  return line?.split(',')[0] ?? '';
}

test('without a quorum lists are stale and keep what they know; with it registrations are back (R4, L3)', async (t) => {
  const cluster = await ownCluster(t);
  const client = await connect(t, cluster.endpoints, { ttl: 2 });
  const registration = await client.addKey('/d/k', 'v');
  const seen = see(t, client.list('/d', { watch: true }));
  await seen.untilNames('k');
  const [one, two] = cluster.members as [EtcdProcess, EtcdProcess];
  await Promise.all([one.kill(), two.kill()]);
  t.is((await seen.untilStatus('stale')).children.join(), 'k');
  await until(() => registration.state === 'lost', 'the loss');
  await Promise.all([one.start(), two.start()]);
  await until(() => registration.state === 'registered', 'the return');
  await seen.untilNames('k');
  await client.addKey('/d/l', 'v');
  await seen.untilNames('k l');
  t.is(client.state, 'connected');
});
