import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { type ConnectOptions, EphemeralError, EtcdEphemeral } from '../../src/index.ts';
import { see } from '../support/listings.ts';
import { freePort } from '../support/ports.ts';
import { type EtcdWithUsers, startEtcdWithUsers } from '../support/users.ts';
import { until, within } from '../support/wait.ts';

/** In no word that anybody else would write. */
const SECRET = 'xyzzy-plugh-7';
/** What etcd's simple tokens look like: who has one is let in as its user. */
const TOKEN = /\b[A-Za-z]{16}\.\d+\b/;

/** Everything that a program may print or send of something. */
function everything(thing: unknown): string {
  const parts = [inspect(thing, { depth: null, showHidden: true, getters: true }), String(thing)];
  if (typeof thing === 'object' && thing !== null) {
    parts.push(JSON.stringify(thing) ?? '', JSON.stringify(thing, Object.getOwnPropertyNames(thing)) ?? '');
  }
  if (thing instanceof Error) parts.push(thing.message, thing.stack ?? '', everything(thing.cause));
  return parts.join('\n');
}

async function withUser(t: ExecutionContext) {
  const users = await startEtcdWithUsers();
  t.teardown(() => users.destroy());
  await users.root('role', 'add', 'svc');
  await users.root('role', 'grant-permission', 'svc', 'readwrite', '/space', '--prefix');
  await users.root('user', 'add', `me:${SECRET}`);
  await users.root('user', 'grant-role', 'me', 'svc');
  return { users, auth: { username: 'me', password: SECRET } };
}

const untyped = (options: unknown) => EtcdEphemeral.connect(options as ConnectOptions);

test('no error holds the password, and neither does a client that is printed (A4)', async (t) => {
  const { users, auth } = await withUser(t);
  const { endpoint: hosts } = users.etcd;
  const url = `http://me:${SECRET}@127.0.0.1:2379`;
  const heard: string[] = [];
  const hear = (message: string) => heard.push(message);
  const logger = { info: hear, warn: hear, error: hear };
  const client = await EtcdEphemeral.connect({ hosts, auth, namespace: '/space', ttl: 3, logger });
  t.teardown(() => client.close());
  const elsewhere = await EtcdEphemeral.connect({ hosts, auth, namespace: '/other', ttl: 3, logger });
  t.teardown(() => elsewhere.close());
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  const wrong = { username: 'me', password: `${SECRET}-not` };
  const refused = [
    () => EtcdEphemeral.connect({ hosts, auth: wrong }),
    () => EtcdEphemeral.connect({ hosts, auth: { ...auth, username: 'nobody' } }),
    () => EtcdEphemeral.connect({ hosts: nowhere, auth, connectTimeout: 0.3 }),
    () => EtcdEphemeral.connect({ hosts: url, auth }),
    () => EtcdEphemeral.connect({ hosts: () => url, connectTimeout: 0.3 }),
    () => EtcdEphemeral.connect({ hosts: [hosts, `me:${SECRET}@b:1`] }),
    () => untyped(url),
    () => untyped({ hosts, auth: SECRET }),
    () => untyped({ hosts, auth: { password: SECRET } }),
    () => untyped({ hosts, auth: () => ({ username: '', password: SECRET }) }),
    () => untyped({ hosts, password: SECRET }),
    () => elsewhere.addDir('/d'),
    () => elsewhere.addKey('/k', 'v'),
    () => elsewhere.get('/k'),
    () => elsewhere.list('/'),
  ];
  for (const call of refused) {
    const error = await t.throwsAsync(call as () => Promise<unknown>, undefined, String(call));
    t.true(error instanceof EphemeralError);
    t.false(everything(error).includes(SECRET), String(call));
    t.notRegex(everything(error), TOKEN);
  }
  const registration = await client.addKey('/k', 'v', { heartbeat: 'put' });
  const seen = see(t, elsewhere.list('/', { watch: true }));
  await seen.untilEnd();
  await users.root('user', 'delete', 'me');
  await users.etcd.restart();
  await until(() => registration.state === 'lost', 'the loss');
  const things = [seen.error, registration.error, registration, client, elsewhere, heard];
  for (const thing of things) {
    t.false(everything(thing).includes(SECRET), inspect(thing));
    t.notRegex(everything(thing), TOKEN);
  }
  t.true(heard.length > 0);
});

interface Told {
  readonly code: number | null;
  readonly output: string;
  readonly commandLine: string;
}

/** Runs the command with every log there is, until it ends or `enough` is found in what it prints. */
async function command(t: ExecutionContext, args: string[], env: NodeJS.ProcessEnv, enough?: RegExp): Promise<Told> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBUG: '*', ...env },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const commandLine = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8');
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  if (enough) {
    await until(() => enough.test(output), `${enough} of ${args.join(' ')}`);
    child.kill('SIGTERM');
  }
  return { code: await within(closed, args.join(' ')), output, commandLine };
}

/** Two commands by one user: what holds the registration, and what must see it. */
async function runAll(t: ExecutionContext, { etcd }: EtcdWithUsers, flags: string[], env: NodeJS.ProcessEnv) {
  const all = ['--namespace', '/space', '--endpoints', etcd.endpoint, ...flags];
  const told = [
    await command(t, [...all, 'register', '/svc/a', 'v', '--ttl', '3'], env, /registered \/svc\/a/),
    await command(t, [...all, 'add-dir', '/svc'], env),
    await command(t, [...all, 'ls', '/svc', '--watch'], env, /ephemeral:mirror/),
    await command(t, [...all, 'ls', '/svc', '--namespace', '/other'], env),
  ];
  t.deepEqual(
    told.map(({ code }) => code),
    [143, 0, 143, 1],
  );
  t.true(
    told.every(({ output }) => output.includes('ephemeral:connection')),
    'the logs are on',
  );
  return told;
}

test('with every log on the command tells no password and no token, and its command line shows none (A4)', async (t) => {
  const { users } = await withUser(t);
  const passwordFile = join(mkdtempSync(join(tmpdir(), 'secrets-')), 'password');
  writeFileSync(passwordFile, `${SECRET}\n`, { mode: 0o600 });
  const told = [
    ...(await runAll(t, users, ['--user', 'me', '--password-file', passwordFile], {})),
    await command(t, ['--endpoints', users.etcd.endpoint, 'ls', '/'], { ETCDCTL_USER: `me:${SECRET}` }),
    await command(t, ['--endpoints', users.etcd.endpoint, 'ls', '/'], { ETCDCTL_USER: `me:${SECRET}-not` }),
    await command(t, ['--endpoints', users.etcd.endpoint, '--user', 'me', 'ls', '/'], { ETCDCTL_PASSWORD: SECRET }),
  ];
  for (const { output, commandLine } of told) {
    t.false(output.includes(SECRET), output);
    t.notRegex(output, TOKEN);
    t.false(commandLine.includes(SECRET));
  }
});

test('the password of a --ready URL is not told while it is waited for (A4)', async (t) => {
  const { users } = await withUser(t);
  const ready = `http://me:${SECRET}@127.0.0.1:${await freePort()}/health`;
  const args = ['--endpoints', users.etcd.endpoint, 'register', '/space/a', 'v', '--ready', ready];
  const { output } = await command(t, args, { ETCDCTL_USER: `me:${SECRET}` }, /waiting for http:\/\/…@127/);
  t.false(output.includes(SECRET), output);
});
