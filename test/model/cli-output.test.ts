import test from 'ava';
import fc from 'fast-check';
import { childText, escapeLines, escapeText } from '../../src/cli/output.ts';
import type { Listing } from '../../src/ephemeral/api.ts';

function listing(values: Record<string, string | undefined>, directories: string[] = []): Listing {
  const entries = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, { value, created: 1 }] as const],
  );
  return {
    path: '/d',
    children: Object.keys(values).sort(),
    directories,
    entries: new Map(entries),
    revision: 1,
    epoch: 0,
    status: 'live',
    toJSON: () => ({}),
  };
}

test('what a terminal would obey, and what would break a line, is escaped', (t) => {
  t.is(escapeText('a\u001b[31mred\u0007\n\r\t\\'), 'a\\x1b[31mred\\x07\\n\\r\\t\\\\');
  t.is(escapeText('\u009b2J\u202egnp.exe\u2028\ud800'), '\\x9b2J\\u202egnp.exe\\u2028\\ud800');
  t.is(escapeText('größe 日本 👩‍💻'), 'größe 日本 👩‍💻');
});

test('escaped text is one line without control characters, and different texts stay different', (t) => {
  const text = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(text, text, (one, other) => {
      if (/\p{Cc}/u.test(escapeText(one))) return false;
      return one === other || escapeText(one) !== escapeText(other);
    }),
  );
  t.pass();
});

test('a value shown on its own keeps its lines, but no terminal control', (t) => {
  t.is(escapeLines('a\n\tb\u001b]0;title\u0007\\'), 'a\n\tb\\x1b]0;title\\x07\\');
});

test('a child shows its slash and its value', (t) => {
  const list = listing({ dir: undefined, key: 'v\n', both: 'w' }, ['dir', 'both']);
  const directories = new Set(list.directories);
  t.is(childText(list, 'dir', directories), 'dir/');
  t.is(childText(list, 'key', directories), 'key\tv\\n');
  t.is(childText(list, 'both', directories), 'both/\tw');
});
