import { execFile } from 'node:child_process';
import { dirname, isAbsolute } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { filter, firstValueFrom, type Observable, ReplaySubject } from 'rxjs';
import { systemClock } from '../../src/core/clock.ts';
import { inspect } from '../../src/ephemeral/inspect.ts';
import { type Grant, type GrantTarget, roles } from '../../src/ephemeral/roles.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { type Ephemeral, EtcdEphemeral, type Listing, PermissionDeniedError } from '../../src/index.ts';
import { CountingStore } from '../support/counting-store.ts';
import { etcdctlBinary } from '../support/etcd-process.ts';
import { connectOver } from '../support/space.ts';
import { type EtcdWithUsers, ROOT, startEtcdWithUsers } from '../support/users.ts';
import { until } from '../support/wait.ts';

const run = promisify(execFile);

interface Scope {
  readonly title: string;
  readonly namespace: string;
  readonly dir: string;
  /** What `ephemeral roles` is told. */
  readonly args: readonly string[];
  readonly directories: readonly string[];
  /** Keys near by that neither role may touch. */
  readonly foreign: readonly string[];
}

const SCOPES: readonly Scope[] = [
  {
    title: 'of one directory',
    namespace: '/space',
    dir: '/services/api',
    args: ['--namespace', '/space', '--dir', '/services/api'],
    directories: ['/services/api'],
    foreign: [
      '/space/services/apis',
      '/space/services/other/a',
      '/space/_dirs/services/apis',
      '/space/_watcherDir/services//',
      '/space/_watcherLock/names/services//1',
      '/services/api/a',
      '/_sessions/1',
    ],
  },
  {
    title: 'of a whole namespace',
    namespace: 'space',
    dir: '/services/api',
    args: ['--namespace', 'space'],
    directories: [],
    foreign: ['space0', 'spac/a', 'space/_elastic/endpoints/h1', 'space/__', '/_sessions/1'],
  },
];

async function withUsers(t: ExecutionContext): Promise<EtcdWithUsers> {
  const etcd = await startEtcdWithUsers();
  t.teardown(() => etcd.destroy());
  return etcd;
}

/** Has the command print the roles, and a shell do what is printed. */
async function pasteRoles({ etcd }: EtcdWithUsers, args: readonly string[]): Promise<void> {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', 'roles', ...args]);
  const binary = etcdctlBinary();
  const path = isAbsolute(binary) ? `${dirname(binary)}:${process.env.PATH}` : process.env.PATH;
  const user = { ETCDCTL_USER: ROOT.username, ETCDCTL_PASSWORD: ROOT.password };
  await run('sh', ['-e', '-c', stdout], {
    env: { ...process.env, ...user, PATH: path, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: etcd.endpoint },
  });
}

const WATCHES = (['mirror', 'direct'] as const).flatMap((via) => [false, true].map((values) => ({ via, values })));

function followed(list: Observable<Listing>) {
  const seen = new ReplaySubject<Listing>(1);
  const subscription = list.subscribe(seen);
  return {
    untilNames: (names: string) => firstValueFrom(seen.pipe(filter((listing) => listing.children.join(' ') === names))),
    stop: () => subscription.unsubscribe(),
  };
}

/** Both mirrors of the directory stand, with their shadows. */
async function mirrored(client: Ephemeral, dir: string): Promise<boolean> {
  const { directory } = await inspect(client, dir);
  return directory?.mirrors.filter(({ told, missing, surplus }) => told && missing + surplus === 0).length === 2;
}

type Auth = { username: string; password: string };

/** All that the role is for, twice over: the second client stands in line behind the first. Rejects at the first refusal. */
async function workAsRegistrar({ etcd }: EtcdWithUsers, auth: Auth, { namespace, dir }: Scope): Promise<void> {
  let refuse: (error: Error) => void = () => {};
  const refused = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  refused.catch(() => {});
  const hear = (message: string) => refuse(new Error(message));
  const logger = { info: () => {}, warn: hear, error: hear };
  const options = { hosts: etcd.endpoint, auth, namespace, ttl: 5, logger };
  const first = await EtcdEphemeral.connect(options);
  const second = await EtcdEphemeral.connect(options);
  const clients = [first, second];
  const work = async () => {
    await first.addDir(dir);
    await first.addDir(`${dir}/sub`);
    const a = await first.addKey(`${dir}/a`, '1');
    await a.update('2');
    const deep = await second.addKey(`${dir}/sub/b`, '1', { heartbeat: 'put' });
    if ((await second.get(`${dir}/a`)) !== '2') throw new Error('the value is not there');
    await first.list(dir);
    await first.list(`${dir}/sub`, { values: true });
    for (const client of clients) {
      const lists = WATCHES.map((how) => followed(client.list(dir, { watch: true, ...how })));
      for (const list of lists) await list.untilNames('a sub');
      await until(() => Promise.race([mirrored(client, dir), refused.catch(() => true)]), 'both mirrors');
      const c = await second.addKey(`${dir}/c`, '1');
      for (const list of lists) await list.untilNames('a c sub');
      await c.remove();
      for (const list of lists) await list.untilNames('a sub');
      if (client === second) for (const list of lists) list.stop();
    }
    await deep.remove();
    await second.removeDir(`${dir}/sub`);
    await first.close();
    await second.removeDir(dir);
  };
  try {
    await Promise.race([work(), refused]);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Past a ttl a registration stands only if the lease was renewed and its keys verified. Rejects when it is lost meanwhile. */
async function outliveItsTtl({ etcd }: EtcdWithUsers, auth: Auth, { namespace, dir }: Scope): Promise<void> {
  const ttl = 3;
  const client = await EtcdEphemeral.connect({ hosts: etcd.endpoint, auth, namespace, ttl });
  try {
    const registration = await client.addKey(`${dir}/a`, '1');
    const endMs = performance.now() + ttl * 1_500;
    await until(() => registration.state !== 'registered' || performance.now() > endMs, 'one and a half ttl');
    if (registration.error) throw registration.error;
  } finally {
    await client.close();
  }
}

/** All that a client with `candidate: false` does, beside one that has the mirrors. Rejects when it must go without them. */
async function workAsWatcher(
  { etcd }: EtcdWithUsers,
  auth: Auth,
  { namespace, dir }: Scope,
  other: Ephemeral,
): Promise<void> {
  const hosts = etcd.endpoint;
  const traffic = new CountingStore(new EtcdStore({ hosts, auth }));
  const client = await connectOver(traffic, systemClock(), { namespace, candidate: false });
  const isWatched = (part: string) =>
    [...traffic.openWatches.values()].filter(({ target }) => 'key' in target && target.key.includes(part)).length === 2;
  try {
    await client.get(`${dir}/a`);
    await client.list(dir);
    await client.list(`${dir}/sub`, { values: true });
    await inspect(client, `${dir}/a`);
    for (const via of ['mirror', 'direct'] as const) {
      const lists = [false, true].map((values) => followed(client.list(dir, { watch: true, via, values })));
      for (const list of lists) await list.untilNames('a sub');
      if (via === 'mirror') {
        await until(() => isWatched('/_watcherLock/') || watchesDirectly(traffic), 'the lists to rely on the mirrors');
        if (watchesDirectly(traffic)) throw new Error('it went direct, although there are mirrors');
      }
      const c = await other.addKey(`${dir}/c`, '1');
      for (const list of lists) await list.untilNames('a c sub');
      await c.remove();
      for (const list of lists) await list.untilNames('a sub');
      for (const list of lists) list.stop();
    }
  } finally {
    await client.close();
  }
}

function watchesDirectly(traffic: CountingStore): boolean {
  return [...traffic.openWatches.values()].some(({ target }) => 'prefix' in target);
}

const words = (target: GrantTarget): string[] => {
  if ('prefix' in target) return [target.prefix, '--prefix'];
  return 'end' in target ? [target.key, target.end] : [target.key];
};

/** The grant taken away, or one half of it. */
function lesser({
  access,
  target,
  purpose,
}: Grant): { title: string; left: string | undefined; target: GrantTarget }[] {
  const halves = access === 'readwrite' ? ['read', 'write'] : [];
  return [undefined, ...halves].map((left) => ({
    title: `${words(target).join(' ')} (${purpose}) with ${left ?? 'nothing'}`,
    left,
    target,
  }));
}

async function withLess({ root }: EtcdWithUsers, role: string, grant: Grant, body: (title: string) => Promise<void>) {
  for (const { title, left, target } of lesser(grant)) {
    await root('role', 'revoke-permission', role, ...words(target));
    if (left !== undefined) await root('role', 'grant-permission', role, left, ...words(target));
    await body(title);
    await root('role', 'grant-permission', role, grant.access, ...words(target));
  }
}

for (const scope of SCOPES) {
  test(`the registrar role ${scope.title} is enough, and each part of it is needed (A1)`, async (t) => {
    t.timeout(240_000);
    const etcd = await withUsers(t);
    await pasteRoles(etcd, scope.args);
    const auth = await etcd.addUser('registrar', 'ephemeral-registrar');
    await workAsRegistrar(etcd, auth, scope);
    await outliveItsTtl(etcd, auth, scope);
    t.is((await etcd.root('get', '', '--prefix', '--keys-only')).trim(), '', 'it leaves nothing');
    for (const grant of roles(scope).registrar) {
      await withLess(etcd, 'ephemeral-registrar', grant, async (title) => {
        const name = grant.purpose.startsWith('register names up') ? 'A' : undefined;
        const work = name === undefined ? workAsRegistrar(etcd, auth, scope) : registerUpperCase(etcd, auth, scope);
        const error = await t.throwsAsync(work, undefined, title);
        t.regex(error?.message ?? '', /does not let this user do that/, title);
        await etcd.root('del', '', '--prefix');
      });
    }
    for (const key of scope.foreign) {
      await t.throwsAsync(userctl(etcd, auth, 'put', key, 'v'), { message: /permission denied/ }, key);
    }
  });

  test(`the watcher role ${scope.title} is enough, each part of it is needed, and no write is allowed (A1)`, async (t) => {
    t.timeout(240_000);
    const etcd = await withUsers(t);
    await pasteRoles(etcd, scope.args);
    const auth = await etcd.addUser('watcher', 'ephemeral-watcher');
    const { namespace, dir } = scope;
    const other = await EtcdEphemeral.connect({ hosts: etcd.etcd.endpoint, auth: ROOT, namespace });
    t.teardown(() => other.close());
    await other.addKey(`${dir}/a`, '1');
    await other.addDir(`${dir}/sub`);
    for (const values of [false, true]) other.list(dir, { watch: true, values }).subscribe();
    await until(() => mirrored(other, dir), 'both mirrors');
    const keys = async () =>
      (await etcd.root('get', namespace, '--prefix', '--keys-only')).split('\n').filter((key) => key !== '');
    const before = await keys();
    await workAsWatcher(etcd, auth, scope, other);
    await until(() => mirrored(other, dir), 'the mirrors to be as they were');
    t.deepEqual(await keys(), before);

    for (const grant of roles(scope).watcher) {
      await withLess(etcd, 'ephemeral-watcher', grant, async (title) => {
        const error = await t.throwsAsync(workAsWatcher(etcd, auth, scope, other), undefined, title);
        t.true(error instanceof PermissionDeniedError || /it went direct/.test(error?.message ?? ''), title);
      });
    }
    for (const key of [...before, `${namespace}${dir}/new`, `${namespace}${dir}`, ...scope.foreign]) {
      await t.throwsAsync(userctl(etcd, auth, 'put', key, 'v'), { message: /permission denied/ }, key);
      await t.throwsAsync(userctl(etcd, auth, 'del', key), { message: /permission denied/ }, key);
    }
    // Leases are for everyone to make, but only for those to end who may write what hangs on them.
    const [lease = ''] = /^[0-9a-f]{10,}$/m.exec(await etcd.root('lease', 'list')) ?? [];
    await t.notThrowsAsync(userctl(etcd, auth, 'lease', 'grant', '10'));
    await t.throwsAsync(userctl(etcd, auth, 'lease', 'revoke', lease), { message: /permission denied/ });
  });
}

test('with --follow the roles let a client follow an elastic cluster, and each part of that is needed (A1)', async (t) => {
  const etcd = await withUsers(t);
  const { endpoint: hosts } = etcd.etcd;
  const [scope] = SCOPES as [Scope];
  await pasteRoles(etcd, [...scope.args, '--follow', '/_elastic']);
  const auth = await etcd.addUser('watcher', 'ephemeral-watcher');
  /** What the client says against it, or nothing as soon as etcd has its two watches. */
  const follow = async (): Promise<string> => {
    const heard: string[] = [];
    const logger = { info: () => {}, warn: (message: string) => heard.push(message), error: () => {} };
    const { namespace } = scope;
    const client = await EtcdEphemeral.connect({
      hosts,
      auth,
      namespace,
      candidate: false,
      follow: '/_elastic',
      logger,
    });
    const watches = async () => {
      const metrics = await (await fetch(`${hosts}/metrics`)).text();
      return /^etcd_debugging_mvcc_watcher_total (\d+)/m.exec(metrics)?.[1];
    };
    try {
      await until(async () => heard.length > 0 || (await watches()) === '2', 'the endpoints to be followed');
      return heard.join();
    } finally {
      await client.close();
      await until(async () => (await watches()) === '0', 'the watches to end');
    }
  };
  t.is(await follow(), '');
  const without = roles(scope).watcher;
  const added = roles({ ...scope, follow: '/_elastic' }).watcher.slice(without.length);
  t.is(added.length, 4);
  for (const grant of added) {
    await withLess(etcd, 'ephemeral-watcher', grant, async (title) => {
      t.regex(await follow(), /not followed: .*does not let this user do that/, title);
    });
  }
});

/** Names below and above the reserved first character are two ranges of keys. */
async function registerUpperCase({ etcd }: EtcdWithUsers, auth: Auth, { namespace }: Scope): Promise<void> {
  const client = await EtcdEphemeral.connect({ hosts: etcd.endpoint, auth, namespace });
  try {
    await client.addKey('/A', '1');
  } finally {
    await client.close();
  }
}

async function userctl({ etcd }: EtcdWithUsers, { username, password }: Auth, ...args: string[]): Promise<void> {
  const env = { ...process.env, ETCDCTL_API: '3', ETCDCTL_USER: username, ETCDCTL_PASSWORD: password };
  await run(etcdctlBinary(), ['--endpoints', etcd.endpoint, ...args], { env });
}
