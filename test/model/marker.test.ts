import test from 'ava';
import { makeChild, NO_VALUE, newTree } from '../../src/ephemeral/directory.ts';
import {
  applyMarker,
  decodeMarker,
  encodeMarker,
  keyState,
  type Marker,
  type Replica,
} from '../../src/ephemeral/mirror/marker.ts';

const key = keyState(makeChild({ key: true }));
const gone = keyState(undefined);

function marker(from: number, to: number, touched: Marker['keys']['touched'], dirs?: Partial<Marker['dirs']>): Marker {
  return { lock: 'lock', keys: { from, to, touched }, dirs: { from: 0, to: 0, touched: [], ...dirs } };
}

function replica(revision: number, ...names: string[]): Replica {
  const tree = newTree();
  for (const name of names) tree.set(name, makeChild({ key: true }) ?? never());
  return { tree, revisions: { keys: revision, dirs: 0 } };
}

function never(): never {
  throw new Error('no child');
}

test('a marker that ends where the reader stands, or before, says nothing new', (t) => {
  const reader = replica(10, 'a');
  t.is(applyMarker(reader, marker(5, 10, [['a', gone]])), 'nothing new');
  t.is(applyMarker(reader, marker(5, 9, [['a', gone]])), 'nothing new');
  t.deepEqual(reader.tree.keysArray(), ['a']);
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
    t.deepEqual(reader.tree.keysArray(), ['b']);
    t.is(reader.revisions.keys, 10);
  }
});

test('a reader that stands before the span is behind, and keeps what it has', (t) => {
  const reader = replica(4, 'a');
  t.is(applyMarker(reader, marker(5, 10, [['a', gone]])), 'behind');
  t.deepEqual(reader.tree.keysArray(), ['a']);
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
  t.deepEqual(reader.tree.keysArray(), ['a']);
});

test('added directories are a span of their own', (t) => {
  const reader: Replica = { tree: newTree(), revisions: { keys: 5, dirs: 5 } };
  t.is(applyMarker(reader, marker(0, 3, [], { from: 4, to: 6, touched: [['d', true]] })), 'changed');
  t.deepEqual(reader.revisions, { keys: 5, dirs: 6 });
  t.true(reader.tree.get('d')?.added);
  t.is(applyMarker(reader, marker(5, 7, [['d', key]], { from: 6, to: 6 })), 'changed');
  t.like(reader.tree.get('d'), { added: true, key: true });
  t.is(applyMarker(reader, marker(7, 8, [['d', gone]], { from: 6, to: 9, touched: [['d', false]] })), 'changed');
  t.is(reader.tree.size, 0);
});

test('behind in one span is behind', (t) => {
  const reader: Replica = { tree: newTree(), revisions: { keys: 5, dirs: 5 } };
  t.is(applyMarker(reader, marker(5, 6, [['a', key]], { from: 7, to: 8, touched: [] })), 'behind');
  t.is(reader.tree.size, 0);
});

test('markers survive the wire, with values of any bytes and names like __proto__', (t) => {
  const value = (bytes: Uint8Array | string, created = 3) =>
    keyState(makeChild({ key: true, created, value: typeof bytes === 'string' ? Buffer.from(bytes) : bytes }));
  const sent = marker(
    1,
    9,
    [
      ['a', key],
      ['dir', keyState(makeChild({ below: true }))],
      ['both', keyState(makeChild({ key: true, below: true }))],
      ['gone', gone],
      ['text', value('grüße "quoted" \u0000')],
      ['bytes', value(Buffer.from([0xff, 0x00, 0xfe]))],
      ['empty', value('')],
      ['__proto__', value('x')],
    ],
    {
      from: 2,
      to: 8,
      touched: [
        ['added', true],
        ['removed', false],
      ],
    },
  );
  const received = decodeMarker(Buffer.from(encodeMarker(sent)));
  t.is(received?.lock, 'lock');
  t.deepEqual(received?.dirs, sent.dirs);
  t.deepEqual(
    received?.keys.touched.map(([name]) => name),
    sent.keys.touched.map(([name]) => name),
  );
  for (const [index, [name, state]] of sent.keys.touched.entries()) {
    const got = received?.keys.touched[index]?.[1];
    t.like(got, { key: state.key, below: state.below, created: state.created }, name);
    t.deepEqual(Buffer.from(got?.value ?? []), Buffer.from(state.value), name);
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
  ]) {
    t.is(decodeMarker(Buffer.from(text)), undefined, text);
  }
  t.is(decodeMarker(NO_VALUE), undefined);
  t.is(decodeMarker(Buffer.from([0xff, 0xfe])), undefined);
});
