import test from 'ava';
import { BehaviorSubject } from 'rxjs';
import type { Registration, RegistrationState } from '../../src/ephemeral/api.ts';
import { hanging, setUp } from '../support/cli-world.ts';
import { until } from '../support/wait.ts';

function registration(path: string, value: string): Registration {
  const state$ = new BehaviorSubject<RegistrationState>('registered');
  return { path, value, state: 'registered', state$, error: undefined } as Partial<Registration> as Registration;
}

test('a call without an answer ends after --timeout, and the client is closed', async (t) => {
  const world = setUp({ get: (_, options) => hanging(options?.signal) });
  t.is(await world.run('get', '/a', '--timeout', '0.01'), 1);
  t.regex(world.text.stderr, /^ephemeral: TIMEOUT: [^\n]*0\.01 s[^\n]*\n$/);
  t.is(world.closed, 1);
});

test('a signal ends a call in silence, closes the client, and leaves the next signal to the system', async (t) => {
  const world = setUp({ get: (_, options) => hanging(options?.signal) });
  const exitCode = world.run('get', '/a');
  await until(() => world.connected.length > 0, 'the connection');
  world.signals.emit('SIGINT');
  t.deepEqual(world.signals.eventNames(), []);
  t.is(await exitCode, 130);
  t.deepEqual(world.text, { stdout: '', stderr: '' });
  t.is(world.closed, 1);
});

test('reading commands never contend for a mirror', async (t) => {
  const world = setUp({ get: async () => 'value' });
  t.is(await world.run('get', '/a'), 0);
  t.is(world.connected[0]?.candidate, false);
});

test('get shows a terminal no control character, and gives a pipe the value as it is', async (t) => {
  const value = 'a\u001b[2J\nb\u202e';
  const client = { get: async () => value };
  for (const [isTTY, shown] of [
    [true, 'a\\x1b[2J\nb\\u202e\n'],
    [false, `${value}\n`],
  ] as const) {
    const world = setUp(client, { isTTY });
    t.is(await world.run('get', '/a'), 0);
    t.is(world.text.stdout, shown);
  }
});

test('what nobody foresaw is one escaped line, too', async (t) => {
  const world = setUp({ get: () => Promise.reject(new TypeError('odd\n\u001b[2J')) });
  t.is(await world.run('get', '/a'), 1);
  t.is(world.text.stderr, 'ephemeral: INTERNAL: odd\\n\\x1b[2J\n');
});

for (const [args, expected] of [
  [['/a', 'v'], { path: '/a', value: 'v' }],
  [['--', '/a', '-5'], { path: '/a', value: '-5' }],
  [['/a', 'v', '--'], { path: '/a', value: 'v' }],
] as const) {
  test(`register ${args.join(' ')} holds ${expected.path} with ${expected.value}`, async (t) => {
    const added: unknown[] = [];
    const world = setUp({
      addKey: async (path, value) => {
        added.push({ path, value });
        return registration(path, value);
      },
    });
    const exitCode = world.run('register', ...args);
    await until(() => world.text.stderr.includes('registered /a'), 'the registration');
    world.signals.emit('SIGTERM');
    t.is(await exitCode, 143);
    t.deepEqual(added, [expected]);
    t.true(world.closed > 0);
  });
}

for (const args of [
  ['/a', 'two', 'words'],
  ['/a', 'two', 'words', '--', 'true'],
]) {
  test(`register ${args.join(' ')} runs no word of an unquoted value`, async (t) => {
    const world = setUp();
    t.is(await world.run('register', ...args), 2);
    t.regex(world.text.stderr, /unexpected "words"/);
    t.is(world.connected.length, 0);
  });
}

for (const args of [
  ['/a', 'v', '--', process.execPath, '-e', 'process.exit(6)', '--'],
  ['--', '/a', '-5', '--', process.execPath, '-e', 'process.exit(6)', '--'],
]) {
  test(`register ${args.join(' ')} runs the command`, async (t) => {
    const world = setUp({ addKey: async (path, value) => registration(path, value) });
    t.is(await world.run('register', ...args), 6);
  });
}

test('the demo refuses the flags that mean nothing to it', async (t) => {
  const world = setUp();
  t.is(await world.run('--namespace', '/x', '--json', 'demo'), 2);
  t.regex(world.text.stderr, /--namespace, --json/);
  t.is(await setUp().run('demo'), 0);
  t.is(await setUp().run('demo', '--elastic'), 0);
  t.is(await setUp().run('--endpoints', '127.0.0.1:1', 'demo', '--elastic'), 2);
});
