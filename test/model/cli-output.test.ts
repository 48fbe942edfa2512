import test from 'ava';
import fc from 'fast-check';
import { childText, escapeLines, escapeText, withoutUserinfo, writeJson } from '../../src/cli/output.ts';
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

test('what nobody could see is escaped, but for what holds an emoji together', (t) => {
  t.is(escapeText('api\u200b\u00ad\ufeff\u2060\u115f'), 'api\\u200b\\xad\\ufeff\\u2060\\u115f');
  t.is(escapeText('a\u200db 1\ufe0f \u{e0041}'), 'a\\u200db 1\\ufe0f \\u{e0041}');
  t.is(escapeText('\u2764\ufe0f\u200d\u{1f525}'), '\u2764\ufe0f\u200d\u{1f525}');
});

test('JSON is exact, and does no more harm to a terminal than other lines', (t) => {
  const written: string[] = [];
  const output = {
    write: (text: string) => void written.push(text),
    isTTY: true,
    closed: new AbortController().signal,
  };
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      written.length = 0;
      writeJson(output, { [text]: text });
      const json = written.join('');
      return JSON.parse(json)[text] === text && !/[\p{Cc}\u200b\u202e]/u.test(json.slice(0, -1));
    }),
  );
  writeJson(output, '\u009b\u202e\u{e0041}\\');
  t.is(written.at(-1), '"\\u009b\\u202e\\udb40\\udc41\\\\"\n');
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

test('what stands before the host of a URL is left out, whatever it is made of', (t) => {
  t.is(withoutUserinfo('a http://me:se/c@r:et@h:1/p, tcp://h'), 'a http://…@h:1/p, tcp://h');
  t.is(withoutUserinfo('/svc//a@b'), '/svc//a@b');
});
