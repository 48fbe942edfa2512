import test from 'ava';
import { InvalidPathError } from '../../src/core/errors.ts';
import { isValidName, parsePath, splitChild } from '../../src/core/paths.ts';

const BAD: readonly (readonly [unknown, string])[] = [
  ['', 'not absolute'],
  ['a', 'not absolute'],
  ['a/b', 'not absolute'],
  ['//', 'empty segment'],
  ['//a', 'empty segment'],
  ['/a//b', 'empty segment'],
  ['/a//', 'empty segment'],
  ['/.', 'segment "."'],
  ['/a/../b', 'segment ".."'],
  ['/_a', 'reserved'],
  ['/a/_watcherDir', 'reserved'],
  ['/a\u0000', 'control'],
  ['/a/\u001b[2J', 'control'],
  ['/a\u007f', 'control'],
  ['/a\u0085', 'control'],
  ['/\ufffd', 'replacement'],
  ['/\ud800', 'Unicode'],
  [undefined, 'undefined'],
  [null, 'null'],
  [7, 'number'],
];

for (const [path, why] of BAD) {
  test(`the path ${JSON.stringify(path) ?? 'undefined'} is refused, and the message says "${why}"`, (t) => {
    const error = t.throws(() => parsePath(path), { instanceOf: InvalidPathError });
    t.true(error?.message.includes(why), error?.message);
  });
}

test('one trailing slash is dropped', (t) => {
  t.is(parsePath('/a/b/'), '/a/b');
  t.is(parsePath('/a'), '/a');
});

test('names are any printable Unicode', (t) => {
  for (const name of ['a b', 'ü', '日本', '👍', 'a.b', '-', '...', '__proto__'.slice(2), '%00', 'a_']) {
    t.is(parsePath(`/${name}`), `/${name}`);
    t.true(isValidName(name));
  }
});

test('the root can be listed only', (t) => {
  t.is(parsePath('/', 'root allowed'), '');
  t.throws(() => parsePath('/'), { instanceOf: InvalidPathError });
});

test('a long path is shortened in the message', (t) => {
  const error = t.throws(() => parsePath(`/${'_'.repeat(100_000)}`), { instanceOf: InvalidPathError });
  t.true((error?.message.length ?? 0) < 500);
});

test('a stored key is split into the child and what lies below', (t) => {
  t.deepEqual(splitChild('a'), { name: 'a', below: '' });
  t.deepEqual(splitChild('a/b/c'), { name: 'a', below: 'b/c' });
});

test('a stored key that no path could name is passed over', (t) => {
  for (const rest of ['', '/x', 'a/', 'a//b', '_x', 'a/_b', 'a\u0001', 'x\ufffd', 'a/..'])
    t.is(splitChild(rest), undefined, rest);
});
