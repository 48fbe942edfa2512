import test from 'ava';
import { setUp } from '../support/cli-world.ts';

async function roles(...args: string[]) {
  const world = setUp();
  const code = await world.run('roles', ...args);
  return { code, ...world.text, connections: world.connected.length };
}

const commands = (text: string) => text.split('\n').filter((line) => line.startsWith('etcdctl'));
const ADD = /^etcdctl role add (\S+)$/;

test('roles prints two roles that a shell takes as they are, comments on lines of their own', async (t) => {
  const { code, stdout, stderr, connections } = await roles('--namespace', '/space', '--dir', '/a', '--name', 'team');
  t.is(code, 0);
  t.is(stderr, '');
  t.is(connections, 0);
  t.true(stdout.split('\n').every((line) => line === '' || line.startsWith('#') || line.startsWith('etcdctl role ')));
  t.deepEqual(
    commands(stdout).flatMap((line) => ADD.exec(line)?.[1] ?? []),
    ['team-registrar', 'team-watcher'],
  );
  t.true(stdout.includes('etcdctl role grant-permission team-registrar readwrite /space/a/ --prefix\n'));
  t.true(stdout.includes('etcdctl role grant-permission team-watcher read /space/a\n'));
});

test('the watcher role holds no write, and a directory within another one adds nothing', async (t) => {
  const outer = await roles('--dir', '/a');
  t.deepEqual(await roles('--dir', '/a', '--dir', '/a/b/', '--dir', '/a'), outer);
  t.true(commands(outer.stdout).every((line) => !/watcher (write|readwrite)/.test(line)));
  t.true((await roles('--dir', '/a', '--dir', '/ab')).stdout.includes(' readwrite /ab/ --prefix\n'));
});

test('for a whole namespace nothing can be written below other names that start with _', async (t) => {
  const { stdout } = await roles();
  t.deepEqual(await roles('--dir', '/', '--dir', '/a'), await roles());
  const writes = commands(stdout).flatMap((line) => / (?:write|readwrite) (.+)$/.exec(line)?.[1] ?? []);
  t.deepEqual(writes, [
    '/ /_',
    "'/`' 0",
    '/_dirs/ --prefix',
    '/_watcherDir/ --prefix',
    '/_watcherLock/names/ --prefix',
    '/_watcherValues/ --prefix',
    '/_watcherLock/values/ --prefix',
    '/_sessions/ --prefix',
  ]);
});

test('--follow lets both roles read where an elastic cluster publishes its endpoints', async (t) => {
  const { stdout } = await roles('--dir', '/a', '--follow', '/_elastic');
  for (const role of ['registrar', 'watcher']) {
    t.true(stdout.includes(`ephemeral-${role} read /_elastic/endpoints/ --prefix\n`));
  }
});

test('what a shell would act on is quoted, and a key that starts with a dash is no flag', async (t) => {
  const { stdout } = await roles('--namespace=-$(x)', '--dir', "/it's `a`");
  t.true(stdout.includes(`etcdctl role grant-permission --prefix -- ephemeral-watcher read '-$(x)/it'\\''s \`a\`/'\n`));
});

test('what cannot be seen is not printed to be pasted, but stands in the JSON as it is', async (t) => {
  for (const namespace of ['/a\n/b', '/a\u001b[2J', '/a\u202e', '/a\u200b']) {
    const refused = await roles('--namespace', namespace, '--dir', '/d');
    t.is(refused.code, 2);
    t.is(refused.stdout, '');
    t.regex(refused.stderr, /use --json/);
    const { registrar } = JSON.parse((await roles('--json', '--namespace', namespace, '--dir', '/d')).stdout);
    t.deepEqual(registrar.grants[0], { access: 'readwrite', prefix: `${namespace}/d/`, purpose: 'register, list' });
  }
});

test('a directory that is no path, and a name that is none, are refused', async (t) => {
  const path = await roles('--dir', 'a');
  t.is(path.code, 1);
  t.regex(path.stderr, /^ephemeral: INVALID_PATH: /);
  t.is((await roles('--dir', '/_sessions')).code, 1);
  t.is((await roles('--name', '')).code, 2);
  t.is((await roles('--name=-x')).code, 2);
});
