import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { EtcdEphemeral } from '../../src/index.ts';
import { certificateAuthority } from '../support/certificates.ts';
import { type EtcdProcess, startEtcd } from '../support/etcd-process.ts';
import { etcdctl as etcdctlAt } from '../support/etcdctl.ts';
import { freePort } from '../support/ports.ts';
import { until, within } from '../support/wait.ts';

let etcd: EtcdProcess;

ava.before(async () => {
  etcd = await startEtcd();
});

ava.after.always(() => etcd?.destroy());

/** Each test has processes of its own, and a small machine holds few of them at once. */
const TESTS_AT_ONCE = 4;
const queue: (() => void)[] = [];
let running = 0;

function test(title: string, body: (t: ExecutionContext) => Promise<void>): void {
  ava(title, async (t) => {
    if (running === TESTS_AT_ONCE) await new Promise<void>((resolve) => queue.push(resolve));
    else running += 1;
    try {
      await body(t);
    } finally {
      const next = queue.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  });
}

const etcdctl = (...args: string[]) => etcdctlAt(etcd.endpoint, ...args);

/** The keys under a prefix that are no bookkeeping of ours. */
async function keysUnder(prefix: string): Promise<string[]> {
  return (await etcdctl('get', '--prefix', '--keys-only', prefix)).split('\n').filter(Boolean);
}

interface Run {
  readonly child: ChildProcess;
  readonly stdout: string;
  readonly stderr: string;
  /** The code, or the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  signal(name: NodeJS.Signals): void;
}

function run(t: ExecutionContext, args: readonly string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ETCDCTL_ENDPOINTS: etcd.endpoint, ...env },
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    text.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    text.stderr += chunk;
  });
  const closed = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  t.teardown(() => child.kill('SIGKILL'));
  return {
    child,
    get stdout() {
      return text.stdout;
    },
    get stderr() {
      return text.stderr;
    },
    get exited() {
      return within(closed, `the end of ephemeral ${args.join(' ')}`);
    },
    signal: (name) => void child.kill(name),
  };
}

/** Runs to its end. */
async function finish(t: ExecutionContext, args: readonly string[], env: Record<string, string> = {}) {
  const command = run(t, args, env);
  const code = await command.exited;
  return { code, stdout: command.stdout, stderr: command.stderr };
}

const seen = (command: Run, text: string) =>
  until(() => command.stdout.includes(text) || command.stderr.includes(text), `"${text}" of the command`);

/** A child that says what it hears, and exits with 9 at SIGINT. */
const LISTENER = [
  process.execPath,
  '-e',
  `for (const name of ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']) process.on(name, () => console.log(name));
   process.on('SIGINT', () => { console.log('SIGINT'); process.exit(9); });
   setInterval(() => {}, 1000);
   console.log('up');`,
];

// --- directories, reading

test('directories are made, listed, and removed when they are empty', async (t) => {
  t.deepEqual(await finish(t, ['add-dir', '/dirs']), { code: 0, stdout: '', stderr: '' });
  t.deepEqual(await finish(t, ['add-dir', '/dirs/deep', '--json']), {
    code: 0,
    stdout: '{"path":"/dirs/deep","added":true}\n',
    stderr: '',
  });
  await etcdctl('put', '/dirs/key', 'value');
  t.is((await finish(t, ['ls', '/dirs'])).stdout, 'deep/\nkey\n');
  const full = await finish(t, ['rm-dir', '/dirs']);
  t.is(full.code, 1);
  t.regex(full.stderr, /^ephemeral: DIRECTORY_NOT_EMPTY: [^\n]*\/dirs[^\n]*\n$/);
  t.is((await finish(t, ['rm-dir', '/dirs/deep'])).code, 0);
  t.is((await finish(t, ['ls', '/dirs'])).stdout, 'key\n');
});

test('an error is one line with its code, and exits with 1', async (t) => {
  await finish(t, ['add-dir', '/twice']);
  for (const [args, code] of [
    [['add-dir', '/twice'], 'PATH_EXISTS'],
    [['rm-dir', '/absent'], 'PATH_NOT_FOUND'],
    [['ls', '/absent'], 'PATH_NOT_FOUND'],
    [['ls', '/absent', '--watch'], 'PATH_NOT_FOUND'],
    [['get', '/absent'], 'PATH_NOT_FOUND'],
    [['get', '/twice'], 'IS_DIRECTORY'],
    [['get', 'relative'], 'INVALID_PATH'],
    [['stat', '/absent'], 'PATH_NOT_FOUND'],
  ] as const) {
    const { code: exitCode, stdout, stderr } = await finish(t, args);
    t.is(exitCode, 1, args.join(' '));
    t.is(stdout, '');
    t.regex(stderr, new RegExp(`^ephemeral: ${code}: [^\\n]+\\n$`), args.join(' '));
  }
});

test('with nothing listening the command ends after --timeout with CONNECTION', async (t) => {
  const endpoint = `127.0.0.1:${await freePort()}`;
  for (const args of [
    ['ls', '/a'],
    ['ls', '/a', '--watch'],
    ['register', '/a', 'b', '--', 'echo', 'started'],
  ]) {
    const result = await finish(t, ['--endpoints', endpoint, '--timeout', '0.5', ...args]);
    t.is(result.code, 1);
    t.is(result.stdout, '');
    t.regex(result.stderr, /^ephemeral: CONNECTION: [^\n]+\n$/);
  }
});

test('get prints the value, and ls --values escapes what a terminal would obey', async (t) => {
  const hostile = 'a\u001b[31m\nb\\';
  await etcdctl('put', '/hostile/key', hostile);
  t.is((await finish(t, ['get', '/hostile/key'])).stdout, `${hostile}\n`);
  t.deepEqual(JSON.parse((await finish(t, ['get', '/hostile/key', '--json'])).stdout), {
    path: '/hostile/key',
    value: hostile,
  });
  t.is((await finish(t, ['ls', '/hostile', '--values'])).stdout, 'key\ta\\x1b[31m\\nb\\\\\n');
});

test('a namespace keeps keys apart', async (t) => {
  await etcdctl('put', 'space/svc/a', '1');
  t.is((await finish(t, ['--namespace', 'space', 'get', '/svc/a'])).stdout, '1\n');
});

test('ls --json is one listing on a line', async (t) => {
  await etcdctl('put', '/json/key', 'value');
  const { stdout } = await finish(t, ['--json', 'ls', '/json', '--values']);
  t.is(stdout.split('\n').length, 2);
  const listing = JSON.parse(stdout);
  t.deepEqual(listing.children, ['key']);
  t.is(listing.status, 'live');
  t.is(listing.entries.key.value, 'value');
});

// --- watching

for (const via of [[], ['--direct']]) {
  test(`ls --watch ${via.join('')} prints the list, then what comes, changes and goes, until SIGINT`, async (t) => {
    const dir = `/watched${via.length}`;
    await etcdctl('put', `${dir}/first`, '1');
    const command = run(t, ['ls', dir, '--watch', '--values', ...via]);
    await seen(command, 'first\t1\n');
    await etcdctl('put', `${dir}/second`, '2');
    await seen(command, '+ second\t2\n');
    await etcdctl('put', `${dir}/first`, '3');
    await seen(command, '~ first\t3\n');
    await etcdctl('del', `${dir}/second`);
    await seen(command, '- second\n');
    command.signal('SIGINT');
    t.is(await command.exited, 130);
    t.is(command.stdout, 'first\t1\n+ second\t2\n~ first\t3\n- second\n');
    t.is(command.stderr, '');
    t.deepEqual(
      await keysUnder('/_'),
      (await keysUnder('/_')).filter((key) => !key.includes(dir)),
    );
  });
}

test('ls --watch --wait waits for a directory that is not there yet', async (t) => {
  const command = run(t, ['ls', '/awaited', '--watch', '--wait', '--json']);
  await seen(command, '"children":[]');
  await etcdctl('put', '/awaited/first', '1');
  await seen(command, '"children":["first"]');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
});

test('ls --watch says that a directory is empty so far, on stderr', async (t) => {
  await finish(t, ['add-dir', '/empty']);
  const command = run(t, ['ls', '/empty', '--watch']);
  await seen(command, '/empty is empty so far');
  await etcdctl('put', '/empty/first', '1');
  await seen(command, '+ first\n');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
  t.is(command.stdout, '+ first\n');
});

test('ls --watch ends quietly when its reader goes away', async (t) => {
  await etcdctl('put', '/pipe/first', '1');
  const command = run(t, ['ls', '/pipe', '--watch']);
  await seen(command, 'first\n');
  command.child.stdout?.destroy();
  await etcdctl('put', '/pipe/second', '2');
  t.is(await command.exited, 0);
  t.is(command.stderr, '');
});

test('ls --watch tells on stderr when its list is stale and when it is live again', async (t) => {
  const own = await startEtcd();
  t.teardown(() => own.destroy());
  await etcdctlAt(own.endpoint, 'put', '/stale/key', '1');
  const command = run(t, ['--endpoints', own.endpoint, '--ttl', '2', 'ls', '/stale', '--watch']);
  await seen(command, 'key\n');
  own.pause();
  await seen(command, '/stale is stale');
  own.resume();
  await seen(command, '/stale is live again');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
  t.is(command.stdout, 'key\n');
});

// --- stat

test('stat shows of a key its value, lease and revisions', async (t) => {
  const command = run(t, ['register', '/stat/key', 'value']);
  await seen(command, 'registered /stat/key');
  const { stdout } = await finish(t, ['stat', '/stat/key', '--json']);
  const { key } = JSON.parse(stdout);
  const [kv] = JSON.parse(await etcdctl('get', '/stat/key', '-w', 'json')).kvs;
  t.like(key, { value: 'value', ttl: 10, created: kv.create_revision, modified: kv.mod_revision, version: kv.version });
  const lease = /"lease":(\d+)/.exec(await etcdctl('get', '/stat/key', '-w', 'json'))?.[1] ?? '';
  t.is(key.lease, lease);
  const hex = BigInt(lease).toString(16);
  t.is(key.leaseHex, hex);
  t.true((await etcdctl('lease', 'list')).includes(hex), 'it is what etcdctl shows');
  t.true(key.secondsLeft > 0 && key.secondsLeft <= 10);
  t.true((await finish(t, ['stat', '/stat/key'])).stdout.includes(`\nlease\t${hex}\n`));
  command.signal('SIGTERM');
  await command.exited;
});

test('stat shows of a directory that was added how many children it has, and that it has no mirror', async (t) => {
  await finish(t, ['add-dir', '/stat/dir']);
  await etcdctl('put', '/stat/dir/a', '1');
  await etcdctl('put', '/stat/dir/b/c', '1');
  const { directory } = JSON.parse((await finish(t, ['stat', '/stat/dir', '--json'])).stdout);
  t.like(directory, { added: true, children: 2 });
  t.deepEqual(directory.mirrors, []);
});

test('stat shows of a mirrored directory its marker, its master and its shadow', async (t) => {
  await etcdctl('put', '/stat/mirrored/a', '1');
  const client = await EtcdEphemeral.connect({ hosts: etcd.endpoint });
  t.teardown(() => client.close());
  client.list('/stat/mirrored', { watch: true }).subscribe();
  const mirrorNow = async () => {
    const { stdout } = await finish(t, ['stat', '/stat/mirrored', '--json']);
    return JSON.parse(stdout).directory.mirrors[0];
  };
  const mirror = await until(async () => {
    const now = await mirrorNow();
    return now?.told && now.missing === 0 && now;
  }, 'a mirror');
  t.like(mirror, { kind: 'names', marker: '/_watcherDir/stat/mirrored//', contenders: 1, missing: 0, surplus: 0 });
  t.is(mirror.told.lock, mirror.master.lock);
  t.is(BigInt(`0x${mirror.master.leaseHex}`), BigInt(mirror.master.lease));
  await etcdctl('put', '/stat/mirrored/b', '1');
  const [{ mod_revision: revision }] = JSON.parse(await etcdctl('get', '/stat/mirrored/b', '-w', 'json')).kvs;
  await until(async () => (await mirrorNow()).told.to === revision, 'the mirror to follow');
  const { stdout } = await finish(t, ['stat', '/stat/mirrored']);
  t.regex(stdout, new RegExp(`^ {2}mirrored\\t${revision}, `, 'm'));
  t.regex(stdout, /^ {2}shadow\tcomplete$/m);
});

// --- register

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  test(`register holds until ${signal}, deregisters at once and exits with ${code}`, async (t) => {
    const path = `/hold/${signal}`;
    const command = run(t, ['register', path, 'here']);
    await seen(command, `registered ${path}`);
    t.is(await etcdctl('get', '--print-value-only', path), 'here\n');
    command.signal(signal);
    t.is(await command.exited, code);
    t.deepEqual(await keysUnder(path), []);
    t.is(command.stdout, '');
  });
}

test('with a command register lives and exits as that does', async (t) => {
  const command = run(t, ['register', '/command/a', 'here', '--', ...LISTENER]);
  await seen(command, 'registered /command/a');
  await seen(command, 'up\n');
  for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    command.signal(name);
    await seen(command, `${name}\n`);
  }
  t.deepEqual(await keysUnder('/command/a'), ['/command/a']);
  command.signal('SIGINT');
  t.is(await command.exited, 9);
  t.deepEqual(await keysUnder('/command/a'), []);
});

test('a command’s own exit deregisters; ended by a signal it counts 128 + n', async (t) => {
  t.is((await finish(t, ['register', '/own/a', 'v', '--', 'sh', '-c', 'exit 5'])).code, 5);
  t.is((await finish(t, ['register', '/own/b', 'v', '--', 'sh', '-c', 'kill -9 $$'])).code, 137);
  t.deepEqual(await keysUnder('/own'), []);
});

test('a command that cannot be started exits with 127 or 126, as in a shell, and registers nothing', async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), 'cli-')), 'not-executable');
  writeFileSync(file, '');
  chmodSync(file, 0o600);
  const absent = await finish(t, ['register', '/bad/a', 'v', '--', 'no-such-command']);
  t.deepEqual(absent, { code: 127, stdout: '', stderr: 'ephemeral: COMMAND_NOT_FOUND: no-such-command: not found\n' });
  const forbidden = await finish(t, ['register', '/bad/a', 'v', '--', file]);
  t.is(forbidden.code, 126);
  t.regex(forbidden.stderr, /COMMAND_NOT_EXECUTABLE/);
  t.deepEqual(await keysUnder('/bad'), []);
});

test('--ready registers only once the service answers', async (t) => {
  const port = await freePort();
  const command = run(t, ['register', '/ready/tcp', 'v', '--ready', `tcp://127.0.0.1:${port}`]);
  await seen(command, 'waiting for tcp://');
  t.deepEqual(await keysUnder('/ready/tcp'), []);
  const server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  await seen(command, 'registered /ready/tcp');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
});

test('--ready with http waits for 2xx', async (t) => {
  let status = '503 Busy';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`));
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  const command = run(t, ['register', '/ready/http', 'v', '--ready', `http://127.0.0.1:${port}/health`]);
  await seen(command, 'status 503');
  t.deepEqual(await keysUnder('/ready/http'), []);
  status = '204 No Content';
  await seen(command, 'registered /ready/http');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
});

test('a command that ends before it is ready leaves nothing and gives its code', async (t) => {
  const ready = ['--ready', `tcp://127.0.0.1:${await freePort()}`];
  const result = await finish(t, ['register', '/early/a', 'v', ...ready, '--', 'sh', '-c', 'sleep 0.3; exit 4']);
  t.is(result.code, 4);
  t.false(result.stderr.includes('registered'));
  t.deepEqual(await keysUnder('/early'), []);
});

test('--drain deregisters, and holds the signal back until the drain is over or a second signal comes', async (t) => {
  const long = run(t, ['register', '/drain/long', 'v', '--drain', '3600', '--', ...LISTENER]);
  await seen(long, 'registered /drain/long');
  await seen(long, 'up\n');
  long.signal('SIGTERM');
  await seen(long, 'deregistered /drain/long');
  t.deepEqual(await keysUnder('/drain/long'), []);
  long.signal('SIGINT');
  t.is(await long.exited, 9);
  t.is(long.stdout, 'up\nSIGINT\n');

  const short = run(t, ['register', '/drain/short', 'v', '--drain', '0.2', '--', ...LISTENER]);
  await seen(short, 'registered /drain/short');
  await seen(short, 'up\n');
  short.signal('SIGTERM');
  await seen(short, 'SIGTERM\n');
  t.deepEqual(await keysUnder('/drain/short'), []);
  short.signal('SIGINT');
  t.is(await short.exited, 9);
});

test('a path that is taken is told, ends the command, and exits with 1', async (t) => {
  await etcdctl('put', '/taken/a', 'foreign');
  const result = await finish(t, ['register', '/taken/a', 'v', '--', 'sleep', '3600']);
  t.is(result.code, 1);
  t.regex(result.stderr, /^ephemeral: PATH_EXISTS: [^\n]+\n$/);
  t.is(await etcdctl('get', '--print-value-only', '/taken/a'), 'foreign\n');
});

test('register says what it waits for while another holds the name, and until when', async (t) => {
  const lease = /lease (\w+) granted/.exec(await etcdctl('lease', 'grant', '60'))?.[1] ?? '';
  await etcdctl('put', '--lease', lease, '/held/a', 'former');
  const command = run(t, ['register', '/held/a', 'v', '--', ...LISTENER]);
  await seen(command, `waiting to register /held/a: lease ${lease} holds it, which ends in `);
  t.regex(command.stderr, /in [345]\d s unless it is renewed; given up at about \d\d:\d\d:\d\d\n/);
  await etcdctl('lease', 'revoke', lease);
  await seen(command, 'registered /held/a\n');
  command.signal('SIGINT');
  t.is(await command.exited, 9);
});

test('register says that etcd does not answer when that is what it waits for', async (t) => {
  const own = await startEtcd();
  t.teardown(() => own.destroy());
  const port = await freePort();
  const flags = ['--endpoints', own.endpoint, '--ttl', '2', '--json'];
  const command = run(t, [...flags, 'register', '/silent/a', 'v', '--ready', `tcp://127.0.0.1:${port}`]);
  await seen(command, 'waiting for tcp://');
  await own.stop();
  const server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  await seen(command, '{"path":"/silent/a","state":"waiting","reason":"disconnected"}\n');
  await own.start();
  await seen(command, '"state":"registered"');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
});

test('a registration that is lost and comes back is told on stderr', async (t) => {
  const command = run(t, ['register', '/lost/a', 'v', '--heartbeat', 'put', '--ttl', '2']);
  await seen(command, 'registered /lost/a\n');
  const lease = BigInt(/"lease":(\d+)/.exec(await etcdctl('get', '/lost/a', '-w', 'json'))?.[1] ?? 0).toString(16);
  await etcdctl('lease', 'revoke', lease);
  await seen(command, 'lost /lost/a, trying to get it back: ');
  await seen(command, 'registered /lost/a again\n');
  command.signal('SIGTERM');
  t.is(await command.exited, 143);
});

// --- TLS and users

test('certificates come from flags or the environment', async (t) => {
  const authority = certificateAuthority();
  const { certFile, keyFile } = authority.issue('both');
  const ca = authority.ca.certFile;
  const own = await startEtcd({ tls: { cert: certFile, key: keyFile, clientCa: ca } });
  t.teardown(() => own.destroy());
  const env = { ETCDCTL_ENDPOINTS: own.endpoint.replace('https://', '') };
  const flags = ['--cacert', ca, '--cert', certFile, '--key', keyFile];
  t.deepEqual(await finish(t, [...flags, 'add-dir', '/tls'], env), { code: 0, stdout: '', stderr: '' });
  const all = { ...env, ETCDCTL_CACERT: ca, ETCDCTL_CERT: certFile, ETCDCTL_KEY: keyFile };
  t.deepEqual(await finish(t, ['ls', '/tls'], all), { code: 0, stdout: '', stderr: '' });
  const nobody = await finish(t, ['--timeout', '2', '--cacert', ca, 'ls', '/tls'], env);
  t.is(nobody.code, 1);
  t.regex(nobody.stderr, /^ephemeral: CONNECTION: [^\n]+\n$/);
});

test('user and password come from a file or the environment, and what is refused says so', async (t) => {
  const own = await startEtcd();
  t.teardown(() => own.destroy());
  const ctl = (...args: string[]) => etcdctlAt(own.endpoint, ...args);
  await ctl('user', 'add', 'root:secret');
  await ctl('user', 'grant-role', 'root', 'root');
  await ctl('user', 'add', 'nobody:none');
  await ctl('auth', 'enable');
  const passwordFile = join(mkdtempSync(join(tmpdir(), 'cli-')), 'password');
  writeFileSync(passwordFile, 'secret\n');
  const env = { ETCDCTL_ENDPOINTS: own.endpoint };
  t.is((await finish(t, ['--user', 'root', '--password-file', passwordFile, 'add-dir', '/users'], env)).code, 0);
  t.is((await finish(t, ['ls', '/users'], { ...env, ETCDCTL_USER: 'root:secret' })).code, 0);
  for (const [user, code] of [
    ['root:wrong', 'UNAUTHENTICATED'],
    ['nobody:none', 'PERMISSION_DENIED'],
  ] as const) {
    const refused = await finish(t, ['ls', '/users'], { ...env, ETCDCTL_USER: user });
    t.is(refused.code, 1);
    t.regex(refused.stderr, new RegExp(`^ephemeral: ${code}: [^\\n]+\\n$`));
  }
});

// --- usage

test('wrong usage exits with 2 and writes nothing to stdout', async (t) => {
  const { code, stdout, stderr } = await finish(t, ['no-such-command']);
  t.is(code, 2);
  t.is(stdout, '');
  t.not(stderr, '');
});

test('--version and --help go to stdout and exit with 0', async (t) => {
  t.regex((await finish(t, ['--version'])).stdout, /^\d+\.\d+\.\d+\n$/);
  const help = await finish(t, ['register', '--help']);
  t.is(help.code, 0);
  t.regex(help.stdout, /-- CMD ARGS/);
});
