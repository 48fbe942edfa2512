import test, { type ExecutionContext } from 'ava';
import { EtcdEphemeral, type Registration } from '../../src/index.ts';
import { see } from '../support/listings.ts';
import { type EtcdWithUsers, startEtcdWithUsers } from '../support/users.ts';
import { until } from '../support/wait.ts';

/** Simple tokens that end a second after they were last used. */
const SHORT_TOKENS = ['--auth-token', 'simple', '--auth-token-ttl', '1'];

async function withUser(t: ExecutionContext, extraArgs: readonly string[]) {
  const users = await startEtcdWithUsers({ extraArgs });
  t.teardown(() => users.destroy());
  await users.root('role', 'add', 'svc');
  await users.root('role', 'grant-permission', 'svc', 'readwrite', '/', '--prefix');
  return { users, auth: await users.addUser('me', 'svc') };
}

/** How often anybody asked for a token, by etcd's own count since it started. */
async function authentications({ etcd }: EtcdWithUsers): Promise<number> {
  const metrics = await (await fetch(`${etcd.endpoint}/metrics`)).text();
  const counts = metrics.matchAll(/grpc_server_handled_total{[^}]*grpc_method="Authenticate"[^}]*} (\d+)/g);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

const states = (registrations: readonly Registration[]) => registrations.map(({ state }) => state).join();

test('heartbeats of both kinds and live lists go on while tokens run out, and over restarts that forget them (A2)', async (t) => {
  const { users, auth } = await withUser(t, SHORT_TOKENS);
  const { etcd } = users;
  const options = { hosts: etcd.endpoint, auth, namespace: '/space' };
  // Its calls lie further apart than a token lasts, and those of the other renew one just before it ends, or after.
  const [slow, quick] = [
    await EtcdEphemeral.connect({ ...options, ttl: 20 }),
    await EtcdEphemeral.connect({ ...options, ttl: 5 }),
  ];
  t.teardown(() => Promise.all([slow.close(), quick.close()]));
  const registrations = [
    await slow.addKey('/svc/a', 'v'),
    await slow.addKey('/svc/b', 'v', { heartbeat: 'put' }),
    await quick.addKey('/svc/c', 'v'),
    await quick.addKey('/svc/d', 'v', { heartbeat: 'put' }),
  ];
  const told: string[] = [];
  for (const { path, state$ } of registrations) state$.subscribe((state) => told.push(`${path} ${state}`));
  const lists = [slow, quick].flatMap((client) => [
    see(t, client.list('/svc', { watch: true })),
    see(t, client.list('/svc', { watch: true, values: true, via: 'direct' })),
  ]);
  for (const list of lists) await list.untilNames('a b c d');
  const before = await authentications(users);
  await until(async () => (await authentications(users)) >= before + 3, 'three more tokens', 60_000);
  t.deepEqual(
    told,
    registrations.map(({ path }) => `${path} registered`),
    'nothing was lost for want of a token',
  );
  const extra = await slow.addKey('/svc/e', 'v');
  for (const list of lists) await list.untilNames('a b c d e');
  // A watch that is made with a token which has run out.
  const late = see(t, slow.list('/', { watch: true, via: 'direct' }));
  await late.untilNames('svc');

  await etcd.restart();
  await until(() => states(registrations) === 'registered,registered,registered,registered', 'all registrations');
  await extra.remove();
  for (const list of lists) await list.untilNames('a b c d');
  t.deepEqual(
    lists.filter(({ ended }) => ended),
    [],
  );
});

test('a password that is no longer right is tried once a second at most, and the new one is taken when it is given (A2)', async (t) => {
  const { users, auth } = await withUser(t, []);
  let given = auth;
  const client = await EtcdEphemeral.connect({
    hosts: users.etcd.endpoint,
    auth: () => given,
    namespace: '/space',
    ttl: 5,
  });
  t.teardown(() => client.close());
  const registration = await client.addKey('/svc/a', 'v');
  const seen = see(t, client.list('/svc', { watch: true }));
  await seen.untilNames('a');
  await users.root('user', 'delete', auth.username);
  await users.etcd.restart();
  await until(() => registration.state === 'lost', 'the loss');
  await seen.untilStatus('stale');
  const startMs = performance.now();
  const before = await authentications(users);
  await until(async () => (await authentications(users)) > before + 2, 'more attempts');
  const attempts = (await authentications(users)) - before;
  t.true(attempts <= (performance.now() - startMs) / 1_000 + 1, `${attempts} attempts`);
  given = await users.addUser('other', 'svc');
  await until(() => registration.state === 'registered', 'the return');
  await seen.untilNames('a');
});
