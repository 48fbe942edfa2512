import test from 'ava';
import fc from 'fast-check';
import type { KeyValue, Op, WatchEvent } from '../../src/core/store.ts';
import { ChildMap } from '../../src/ephemeral/child-map.ts';
import { type Children, sameChildren } from '../../src/ephemeral/children.ts';
import { Directory, type Source } from '../../src/ephemeral/directory.ts';
import { type Batch, MARKER_BYTES, MirrorBatch } from '../../src/ephemeral/mirror/batch.ts';
import { applyMarker, decodeMarker, type Replica, touchedCount } from '../../src/ephemeral/mirror/marker.ts';
import { compareShadow } from '../../src/ephemeral/mirror/shadow.ts';

const PREFIXES: Record<Source, string> = { keys: '/d/', dirs: '/_dirs/d/' };
/** After all that a marker here tells of. */
const LATER = 1_000_000;
const SHADOW = '/_watcherDir/d//';

function event(type: 'put' | 'delete', key: string, revision: number, value = '', created = revision): WatchEvent {
  const kv: KeyValue = {
    key,
    value: Buffer.from(value),
    createRevision: created,
    modRevision: revision,
    version: 1,
    lease: '0',
  };
  return { type, kv };
}

function fresh(withValues = false, revision = 0): Directory {
  return new Directory(PREFIXES, withValues, { keys: revision, dirs: revision });
}

/** The plain shadow that a store would hold. */
class Shadow {
  readonly held = new Map<string, Uint8Array>();

  write(batch: Batch): void {
    const names = new Set<string>();
    for (const op of batch.ops) this.#apply(op, names);
  }

  #apply(op: Op, names: Set<string>): void {
    const key = op.type === 'put' ? op.key : op.type === 'delete' && 'key' in op.target ? op.target.key : '';
    if (names.has(key)) throw new Error(`a transaction names ${key} twice`);
    names.add(key);
    if (op.type === 'put') this.held.set(key, Buffer.from(op.value));
    else this.held.delete(key);
  }

  kvs(): KeyValue[] {
    return [...this.held].map(([key, value]) => ({ ...event('put', key, 1).kv, value }));
  }
}

function apply(directory: Directory, batch: MirrorBatch, source: Source, change: WatchEvent): void {
  const name = directory.apply(source, change);
  if (name !== undefined) batch.touch(source, name);
}

/** The marker's transaction and those that bring the shadow in line after it. */
function takeAll(batch: MirrorBatch): readonly Batch[] {
  const taken = [batch.take()];
  while (!batch.isRepaired) taken.push(batch.takeRepairs());
  return taken;
}

test('a batch has one operation a child, and its marker goes with the first of its transactions', (t) => {
  const directory = fresh();
  const batch = new MirrorBatch(SHADOW, 'lock', false, directory, false);
  batch.shadowIs(new Set(), []);
  for (let n = 1; n <= 400; n += 1) apply(directory, batch, 'keys', event('put', `/d/n${n}`, n));
  const [first, ...rest] = takeAll(batch);
  t.is(first?.size, 400);
  t.deepEqual(
    [first, ...rest].map((one) => one?.ops.length),
    [127, 127, 127, 19],
  );
  const told = decodeMarker(Buffer.from(first?.marker ?? ''), LATER);
  t.is(told && touchedCount(told), 400);
  t.true(rest.every(({ marker }) => marker === undefined));
  t.false(batch.hasNews);
});

test('a value that fills a transaction goes without the marker, and a marker too large orders a reading', (t) => {
  const directory = fresh(true);
  const batch = new MirrorBatch(SHADOW, 'lock', true, directory, false);
  batch.shadowIs(new Set(), []);
  apply(directory, batch, 'keys', event('put', '/d/big', 1, 'x'.repeat(MARKER_BYTES + 1)));
  const [first, ...rest] = takeAll(batch);
  t.deepEqual([first?.ops.length, rest.map(({ ops }) => ops.length)], [0, [1]]);
  const told = decodeMarker(Buffer.from(first?.marker ?? ''), LATER);
  t.deepEqual([told?.keys.from, told?.keys.to, told && touchedCount(told)], [1, 1, 0]);
});

test('refreshes are no news', (t) => {
  const directory = fresh();
  const batch = new MirrorBatch(SHADOW, 'lock', false, directory, false);
  apply(directory, batch, 'keys', event('put', '/d/a', 1));
  batch.take();
  apply(directory, batch, 'keys', event('put', '/d/a', 2, 'again', 1));
  t.false(batch.hasNews);
});

test('with values, a refresh with the same value is no news, and another value or creation is', (t) => {
  const directory = fresh(true);
  const batch = new MirrorBatch(SHADOW, 'lock', true, directory, false);
  apply(directory, batch, 'keys', event('put', '/d/a', 1, 'v'));
  batch.take();
  apply(directory, batch, 'keys', event('put', '/d/a', 2, 'v', 1));
  t.false(batch.hasNews);
  apply(directory, batch, 'keys', event('put', '/d/a', 3, 'w', 1));
  t.true(batch.hasNews);
  batch.take();
  apply(directory, batch, 'keys', event('put', '/d/a', 4, 'w', 4));
  t.true(batch.hasNews);
});

test('after a failure everyone is sent to the directory, and the shadow is read again', (t) => {
  const directory = fresh();
  const batch = new MirrorBatch(SHADOW, 'lock', false, directory, false);
  batch.shadowIs(new Set(), []);
  apply(directory, batch, 'keys', event('put', '/d/a', 7));
  batch.take();
  batch.startOver();
  t.false(batch.knowsShadow);
  t.true(batch.hasNews);
  const told = decodeMarker(Buffer.from(batch.take().marker ?? ''), LATER);
  t.deepEqual([told?.keys.from, told?.keys.to], [7, 7]);
});

interface Step {
  readonly type: 'put' | 'delete' | 'read' | 'tell' | 'repair';
  readonly source: Source;
  readonly rest: string;
  readonly value: string;
}

const step: fc.Arbitrary<Step> = fc.record({
  type: fc.constantFrom('put', 'put', 'delete', 'delete', 'read', 'tell', 'repair'),
  source: fc.constantFrom('keys', 'keys', 'keys', 'dirs'),
  rest: fc.constantFrom('a', 'b', 'c', 'a/x', 'a/y', 'b/x/y', '/x', '', '_r', 'c/'),
  value: fc.constantFrom('', 'v', 'w'),
});

for (const withValues of [false, true]) {
  test(`whoever reads at any moment ends with the directory, and so does the shadow${withValues ? ', with values' : ''}`, (t) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { directory, batch, shadow, readers } = run(steps, withValues);
        if (batch.hasNews) tell(batch, shadow, readers);
        while (!batch.isRepaired) shadow.write(batch.takeRepairs());
        for (const reader of readers) if (!sameChildren(reader.children, directory.children)) return false;
        const { wrong } = compareShadow(shadow.kvs(), SHADOW, directory.children, withValues);
        return wrong.size === 0;
      }),
      { numRuns: 2_000 },
    );
    t.pass();
  });
}

function copy(tree: Children): ChildMap {
  const made = new ChildMap();
  for (const [name, child] of tree.entries()) made.put(name, undefined, child);
  return made;
}

function tell(batch: MirrorBatch, shadow: Shadow, readers: readonly Replica[]): void {
  const written = batch.take();
  shadow.write(written);
  const marker = decodeMarker(Buffer.from(written.marker ?? ''), LATER);
  for (const reader of readers) {
    if (marker && applyMarker(reader, marker) === 'behind') throw new Error('a reader who missed nothing is behind');
  }
}

/** Readers take their copy of the real directory whenever they like, and then hear markers only. */
function run(steps: readonly Step[], withValues: boolean) {
  const directory = fresh(withValues);
  const stored = new Map<string, number>();
  const batch = new MirrorBatch(SHADOW, 'lock', withValues, directory, true);
  const shadow = new Shadow();
  const readers: Replica[] = [];
  let revision = 0;
  for (const { type, source, rest, value } of steps) {
    const key = PREFIXES[source] + rest;
    if (type === 'read')
      readers.push({ children: copy(directory.children), revisions: { keys: revision, dirs: revision } });
    else if (type === 'tell') {
      if (batch.hasNews) tell(batch, shadow, readers);
    } else if (type === 'repair') {
      const { held, wrong } = compareShadow(shadow.kvs(), SHADOW, directory.children, withValues);
      batch.shadowIs(held, wrong);
    } else if (type === 'put' || stored.has(key)) {
      revision += 1;
      const created = stored.get(key) ?? revision;
      if (type === 'put') stored.set(key, created);
      else stored.delete(key);
      apply(directory, batch, source, event(type, key, revision, value, created));
    }
  }
  const { held, wrong } = compareShadow(shadow.kvs(), SHADOW, directory.children, withValues);
  batch.shadowIs(held, wrong);
  return { directory, batch, shadow, readers };
}
