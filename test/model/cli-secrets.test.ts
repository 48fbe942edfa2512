import test from 'ava';
import { setUp } from '../support/cli-world.ts';

const SECRET = 'xyzzy-plugh-7';

for (const [args, advice] of [
  [['--password', SECRET, 'ls', '/'], /ETCDCTL_PASSWORD/],
  [[`--password=${SECRET}`, 'ls', '/'], /--password-file/],
  [['ls', '/', '--password', SECRET], /--password-file/],
  [['ls', '/', '--password'], /--password-file/],
  [['--user', `me:${SECRET}`, 'ls', '/'], /--password-file/],
  [[`--user=me:${SECRET}`, 'ls', '/'], /--password-file/],
  [[`--pasword=${SECRET}`, 'ls', '/'], /unknown option '--pasword'[^\n]*\n/],
  [[`--pass=${SECRET}'x\ny`, 'ls', '/'], /unknown option '--pass'/],
  [['--endpoints', `http://me:${SECRET}@a:1`, 'ls', '/'], /--password-file/],
  [['--endpoints', `unix://me:${SECRET}@a`, 'ls', '/'], /--password-file/],
  [['--endpoints', `me:${SECRET}/ @a:1`, 'ls', '/'], /--password-file/],
  [['--endpoints', `me:${SECRET}@a:1,`, 'ls', '/'], /list with commas/],
  [['register', '/a', 'v', '--ready', `ftp://me:${SECRET}@a`], /tcp:\/\/host:port/],
] as const) {
  test(`the secret in ${args.join(' ')} is refused with advice, and not repeated`, async (t) => {
    const { run, text, connected } = setUp();
    t.is(await run(...args), 2);
    t.is(connected.length, 0);
    t.is(text.stdout, '');
    t.regex(text.stderr, advice);
    t.false(text.stderr.includes(SECRET), text.stderr);
  });
}

test('a password in the endpoints of the environment is not repeated', async (t) => {
  for (const endpoints of [`me:${SECRET}@a:1,`, `http://me:${SECRET}@a:1`]) {
    const { run, text } = setUp({}, { env: { ETCDCTL_ENDPOINTS: endpoints } });
    t.is(await run('ls', '/'), 2);
    t.false(text.stderr.includes(SECRET), text.stderr);
  }
});

test('--help offers no password', async (t) => {
  const { run, text } = setUp();
  t.is(await run('--help'), 0);
  t.notRegex(text.stdout, /--password /);
  t.regex(text.stdout, /--password-file/);
});
