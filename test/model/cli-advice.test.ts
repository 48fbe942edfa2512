import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { ADVICE, adviceOf } from '../../src/cli/advice.ts';
import { PathNotFoundError, PermissionDeniedError } from '../../src/core/errors.ts';
import { setUp } from '../support/cli-world.ts';

const src = fileURLToPath(new URL('../../src/', import.meta.url));

/** All sources of the parts whose errors the command shows, with quotes as they are in a message. */
function sources(): string {
  const files = ['core', 'ephemeral', 'etcd'].flatMap((part) =>
    readdirSync(join(src, part), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(src, part, file)),
  );
  return files.map((file) => readFileSync(file, 'utf8')).join('\n');
}

test('every piece of advice that is put in other words is one that the library gives', (t) => {
  const text = sources();
  for (const [library] of ADVICE) t.true(text.includes(library), library);
});

test('advice for a shell names commands and flags, not functions and options', (t) => {
  for (const [, command] of ADVICE) t.notRegex(command, /\b(?:addDir|addKey|exclusive|missing:|credentials\.|option )/);
  t.is(
    adviceOf(
      new PathNotFoundError(
        "there is no directory /a: add it with addDir, add a key below it, or watch it with missing: 'wait'",
      ),
    ),
    'there is no directory /a: add it with add-dir, register something below it, or wait for it with ls --watch --wait',
  );
});

test('what others say is left as it is', (t) => {
  t.is(adviceOf(new Error('read it with list')), 'read it with list');
  t.is(adviceOf('check the option auth'), 'check the option auth');
});

for (const args of [
  ['add-dir', 'relative'],
  ['add-dir', '/'],
  ['rm-dir', '/_dirs'],
  ['ls', '/a//b'],
  ['ls', '/a/../b', '--watch'],
  ['get', '/'],
  ['stat', `/${'x'.repeat(70_000)}`],
  ['register', '/a\nb', 'v'],
  ['register', 'a', 'v', '--', 'true'],
]) {
  test(`the path of ${args.join(' ').slice(0, 40)} is refused before anything is connected to`, async (t) => {
    const { run, text, connected } = setUp();
    t.is(await run(...args), 1);
    t.is(connected.length, 0);
    t.regex(text.stderr, /^ephemeral: INVALID_PATH: [^\n]{1,500}\n$/);
  });
}

for (const args of [
  ['ls'],
  ['ls', '/a', '--no-such-flag'],
  ['ls', '/a', '--direct'],
  ['--ttl', '0', 'ls', '/a'],
  ['register', '/a', 'v', '--ready', 'nowhere'],
  ['ls', '/a', '--wait'],
  ['--ttl', '9000000001', 'ls', '/a'],
  ['--endpoints', 'http://a:1/v3', 'ls', '/a'],
  ['--endpoints', 'http://a,https://b', 'ls', '/a'],
]) {
  test(`${args.join(' ')} is wrong usage, which is told before anything is connected to`, async (t) => {
    const { run, connected, text } = setUp();
    t.is(await run(...args), 2);
    t.is(connected.length, 0);
    t.is(text.stdout, '');
    t.not(text.stderr, '');
  });
}

test('a refusal by etcd points to the command that prints roles', async (t) => {
  const refusal = new PermissionDeniedError('/a: etcd does not let this user do that: grant its role the key range');
  const { run, text } = setUp({ get: () => Promise.reject(refusal) });
  t.is(await run('get', '/a'), 1);
  t.regex(text.stderr, /^ephemeral: PERMISSION_DENIED: \/a: .*ephemeral roles prints how\)\n$/);
});
