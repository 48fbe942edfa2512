import { isUtf8 } from 'node:buffer';
import { type Child, makeChild, NO_VALUE, type Source, setChild, type Tree } from '../directory.ts';

/**
 * Pure: the marker of a mirror, one key whose versions tell watchers what became of a directory.
 *
 * A span says: of every name touched after revision `from` and up to `to`, this is its state at `to`, also where nothing changed in
 * sum. So a reader whose own copy stands anywhere from `from` on can follow; one that stands before `from` has missed something and
 * reads the directory itself. Registrations and added directories lie apart in the store, so each has its span.
 */

export interface Span<State> {
  readonly from: number;
  readonly to: number;
  readonly touched: readonly (readonly [name: string, state: State])[];
}

/** What the registrations alone say of a name. */
export type KeyState = Pick<Child, 'key' | 'below' | 'created' | 'value'>;

export interface Marker {
  /** The lock key of the master that wrote it. */
  readonly lock: string;
  readonly keys: Span<KeyState>;
  readonly dirs: Span<boolean>;
}

/** `[name, bits]`, with values `[name, bits, created, value]`; a value that is no UTF-8 is base64, told by a fifth item. */
type WireKey = [string, number] | [string, number, number, string] | [string, number, number, string, 'base64'];

interface WireMarker {
  v: 1;
  lock: string;
  from: number;
  to: number;
  touched: WireKey[];
  dirs: { from: number; to: number; touched: [string, 0 | 1][] };
}

export function keyState(child: Child | undefined): KeyState {
  return child ?? { key: false, below: false, created: 0, value: NO_VALUE };
}

export function encodeMarker(marker: Marker): string {
  const { lock, keys, dirs } = marker;
  const wire: WireMarker = {
    v: 1,
    lock,
    from: keys.from,
    to: keys.to,
    touched: keys.touched.map(([name, state]) => encodeKey(name, state)),
    dirs: { from: dirs.from, to: dirs.to, touched: dirs.touched.map(([name, added]) => [name, added ? 1 : 0]) },
  };
  return JSON.stringify(wire);
}

function encodeKey(name: string, state: KeyState): WireKey {
  const bits = (state.key ? 1 : 0) | (state.below ? 2 : 0);
  if (state.created === 0) return [name, bits];
  const value = Buffer.from(state.value.buffer, state.value.byteOffset, state.value.byteLength);
  return isUtf8(value)
    ? [name, bits, state.created, value.toString()]
    : [name, bits, state.created, value.toString('base64'), 'base64'];
}

/** Undefined for what is no marker of this version: somebody else wrote there, or a later release. */
export function decodeMarker(bytes: Uint8Array): Marker | undefined {
  try {
    const wire = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as WireMarker;
    if (wire.v !== 1 || typeof wire.lock !== 'string') return undefined;
    const numbers = [wire.from, wire.to, wire.dirs.from, wire.dirs.to];
    if (!numbers.every((revision) => Number.isSafeInteger(revision) && revision >= 0)) return undefined;
    return {
      lock: wire.lock,
      keys: {
        from: wire.from,
        to: wire.to,
        touched: wire.touched.map(([name, bits, created = 0, value = '', encoding]) => [
          name,
          {
            key: (bits & 1) !== 0,
            below: (bits & 2) !== 0,
            created,
            value: value === '' ? NO_VALUE : Buffer.from(value, encoding ?? 'utf8'),
          },
        ]),
      },
      dirs: { ...wire.dirs, touched: wire.dirs.touched.map(([name, added]) => [name, added === 1]) },
    };
  } catch {
    return undefined;
  }
}

/** A reader's copy of a directory, followed through markers. */
export interface Replica {
  readonly tree: Tree;
  readonly revisions: Record<Source, number>;
}

/** What a marker did to a replica. `behind`: it starts after where the replica stands, which must be read anew. */
export type MarkerEffect = 'nothing new' | 'unchanged' | 'changed' | 'behind';

export function applyMarker(replica: Replica, marker: Marker): MarkerEffect {
  const { revisions, tree } = replica;
  const news = (['keys', 'dirs'] as const).filter((source) => marker[source].to > revisions[source]);
  if (news.length === 0) return 'nothing new';
  if (news.some((source) => marker[source].from > revisions[source])) return 'behind';
  let changed = false;
  if (news.includes('keys')) {
    for (const [name, state] of marker.keys.touched) {
      if (setChild(tree, name, makeChild({ ...state, added: tree.get(name)?.added ?? false }))) changed = true;
    }
  }
  if (news.includes('dirs')) {
    for (const [name, added] of marker.dirs.touched) {
      if (setChild(tree, name, makeChild({ ...tree.get(name), added }))) changed = true;
    }
  }
  for (const source of news) revisions[source] = marker[source].to;
  return changed ? 'changed' : 'unchanged';
}
