import test from 'ava';
import { ChildMap } from '../../src/ephemeral/child-map.ts';
import { type Child, makeChild, NO_VALUE } from '../../src/ephemeral/children.ts';
import {
  applyMarker,
  decodeMarker,
  encodeMarker,
  type Marker,
  type Replica,
  touchedCount,
  touchedDirs,
  touchedKeys,
} from '../../src/ephemeral/mirror/marker.ts';

const key = makeChild({ key: true });
const gone = undefined;

type Touched = readonly (readonly [string, Child | undefined])[];

function marker(
  from: number,
  to: number,
  touched: Touched,
  dirs: { from: number; to: number; touched: readonly (readonly [string, boolean])[] } = {
    from: 0,
    to: 0,
    touched: [],
  },
): Marker {
  return {
    lock: 'lock',
    keys: { from, to, touched: touchedKeys(touched) },
    dirs: { ...dirs, touched: touchedDirs(dirs.touched) },
  };
}

function replica(revision: number, ...names: string[]): Replica {
  const tree = new ChildMap();
  for (const name of names) tree.put(name, undefined, makeChild({ key: true }));
  return { children: tree, revisions: { keys: revision, dirs: 0 } };
}

test('a marker that ends where the reader stands, or before, says nothing new', (t) => {
  const reader = replica(10, 'a');
  t.is(applyMarker(reader, marker(5, 10, [['a', gone]])), 'nothing new');
  t.is(applyMarker(reader, marker(5, 9, [['a', gone]])), 'nothing new');
  t.deepEqual(reader.children.names(), ['a']);
});

test('a marker is applied from anywhere in its span', (t) => {
  for (const start of [5, 7, 9]) {
    const reader = replica(start, 'a');
    t.is(
      applyMarker(
        reader,
        marker(5, 10, [
          ['a', gone],
          ['b', key],
        ]),
      ),
      'changed',
    );
    t.deepEqual(reader.children.names(), ['b']);
    t.is(reader.revisions.keys, 10);
  }
});

test('a reader that stands before the span is behind, and keeps what it has', (t) => {
  const reader = replica(4, 'a');
  t.is(applyMarker(reader, marker(5, 10, [['a', gone]])), 'behind');
  t.deepEqual(reader.children.names(), ['a']);
  t.is(reader.revisions.keys, 4);
});

test('a span without length sends everyone before it to the directory, and nobody else', (t) => {
  t.is(applyMarker(replica(9), marker(10, 10, [])), 'behind');
  t.is(applyMarker(replica(10), marker(10, 10, [])), 'nothing new');
});

test('a touch without a change moves the revision and says so', (t) => {
  const reader = replica(5, 'a');
  t.is(applyMarker(reader, marker(5, 8, [['a', key]])), 'unchanged');
  t.is(reader.revisions.keys, 8);
});

test('a child that came and went within one span is told, for the reader who saw it in between', (t) => {
  const reader = replica(7, 'a', 'ghost');
  t.is(applyMarker(reader, marker(5, 10, [['ghost', gone]])), 'changed');
  t.deepEqual(reader.children.names(), ['a']);
});

test('added directories are a span of their own', (t) => {
  const reader: Replica = { children: new ChildMap(), revisions: { keys: 5, dirs: 5 } };
  t.is(applyMarker(reader, marker(0, 3, [], { from: 4, to: 6, touched: [['d', true]] })), 'changed');
  t.deepEqual(reader.revisions, { keys: 5, dirs: 6 });
  t.true(reader.children.get('d')?.added);
  t.is(applyMarker(reader, marker(5, 7, [['d', key]], { from: 6, to: 6, touched: [] })), 'changed');
  t.like(reader.children.get('d'), { added: true, key: true });
  t.is(applyMarker(reader, marker(7, 8, [['d', gone]], { from: 6, to: 9, touched: [['d', false]] })), 'changed');
  t.is(reader.children.size, 0);
});

test('behind in one span is behind', (t) => {
  const reader: Replica = { children: new ChildMap(), revisions: { keys: 5, dirs: 5 } };
  t.is(applyMarker(reader, marker(5, 6, [['a', key]], { from: 7, to: 8, touched: [] })), 'behind');
  t.is(reader.children.size, 0);
});

test('markers survive the wire, with values of any bytes and names like __proto__', (t) => {
  const value = (bytes: Uint8Array | string) => makeChild({ key: true, created: 3, value: Buffer.from(bytes) });
  const states: Touched = [
    ['a', key],
    ['dir', makeChild({ below: true })],
    ['both', makeChild({ key: true, below: true })],
    ['gone', gone],
    ['text', value('grüße "quoted" \u0000')],
    ['bytes', value(Buffer.from([0xff, 0x00, 0xfe]))],
    ['empty', value('')],
    ['__proto__', value('x')],
  ];
  const dirs = {
    from: 2,
    to: 8,
    touched: [
      ['added', true],
      ['removed', false],
    ] as const,
  };
  const received = decodeMarker(Buffer.from(encodeMarker(marker(1, 9, states, dirs))), 10);
  if (!received) return t.fail('not a marker');
  t.is(received.lock, 'lock');
  t.is(touchedCount(received), 10);
  const reader: Replica = { children: new ChildMap(), revisions: { keys: 1, dirs: 2 } };
  for (const name of ['gone', 'removed']) reader.children.put(name, undefined, makeChild({ key: true }));
  reader.children.put('removed', makeChild({ key: true }), makeChild({ added: true }));
  t.is(applyMarker(reader, received), 'changed');
  t.deepEqual(reader.children.names(), ['__proto__', 'a', 'added', 'both', 'bytes', 'dir', 'empty', 'text']);
  for (const [name, state] of states) {
    const got = reader.children.get(name);
    t.deepEqual(got && { ...got, value: [...got.value] }, state && { ...state, value: [...state.value] }, name);
  }
});

test('what is no marker is none', (t) => {
  for (const text of [
    '',
    'x',
    '{}',
    '[]',
    'null',
    '{"v":2,"lock":"l"}',
    '{"v":1,"lock":"l","from":-1,"to":1,"touched":[],"dirs":{}}',
    '{"v":1,"lock":"l","from":1,"to":1,"touched":[7],"dirs":{"from":1,"to":1,"touched":[]}}',
  ]) {
    t.is(decodeMarker(Buffer.from(text), 10), undefined, text);
  }
  t.is(decodeMarker(NO_VALUE, 10), undefined);
  t.is(decodeMarker(Buffer.from([0xff, 0xfe]), 10), undefined);
});

test('a marker that tells of what came after it was written is none', (t) => {
  const sent = Buffer.from(encodeMarker(marker(3, 9, [['a', key]])));
  t.truthy(decodeMarker(sent, 10));
  t.is(decodeMarker(sent, 9), undefined);
  t.is(decodeMarker(Buffer.from(encodeMarker(marker(9, 3, []))), 10), undefined);
});
