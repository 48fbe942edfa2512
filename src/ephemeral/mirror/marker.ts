import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { ChildMap } from '../child-map.ts';
import { type Child, type Children, makeChild, NO_VALUE, plainChild } from '../children.ts';
import type { Source } from '../directory.ts';

/**
 * Pure: the marker of a mirror, one key whose versions tell watchers what became of a directory.
 *
 * A span says: of every name touched after revision `from` and up to `to`, this is its state at `to`, also where nothing changed in
 * sum. So a reader whose own copy stands anywhere from `from` on can follow; one that stands before `from` has missed something and
 * reads the directory itself, unless its copy is what the digest says, however it came to be. Registrations and added directories
 * lie apart in the store, so each has its span.
 */

export interface Span<Touched> {
  readonly from: number;
  readonly to: number;
  readonly touched: Touched;
}

/** What the registrations alone say of a name. */
export type KeyState = Pick<Child, 'key' | 'below' | 'created' | 'value'>;

/** A key with its value: `[name, bits, created, value]`; a value that is no UTF-8 is base64, told by a fifth item. */
type Valued = readonly [string, number, number, string, 'base64'?];

/**
 * By state rather than by name: a storm is hundreds of names in one of four states, which every watcher has to take apart. The list
 * at index 0 has the names that are gone, at 1 those that are a key, at 2 a directory, at 3 both.
 */
export interface TouchedKeys {
  readonly plain: readonly (readonly string[])[];
  /** Where values are followed. */
  readonly valued: readonly Valued[];
}

/** At index 0 the names that are not added (any more), at 1 those that are. */
export type TouchedDirs = readonly (readonly string[])[];

export interface Marker {
  /** The lock key of the master that wrote it. */
  readonly lock: string;
  readonly keys: Span<TouchedKeys>;
  readonly dirs: Span<TouchedDirs>;
  /** Of all that the directory holds at `to`: given where the spans begin anew, so that readers who missed nothing need not read. */
  readonly digest?: string | undefined;
}

interface WireMarker {
  readonly v: 1;
  readonly lock: string;
  readonly from: number;
  readonly to: number;
  readonly touched: readonly (readonly string[])[];
  readonly values?: readonly Valued[];
  readonly dirs: { readonly from: number; readonly to: number; readonly touched: TouchedDirs };
  readonly digest?: string | undefined;
}

export function digestOf(children: Children): string {
  const hash = createHash('sha256');
  for (const [name, { key, below, added, created, value }] of children.entries()) {
    hash.update(`/${name}/${key}/${below}/${added}/${created}/${value.length}/`).update(value);
  }
  return hash.digest('base64url');
}

export function touchedKeys(states: Iterable<readonly [name: string, state: KeyState | undefined]>): TouchedKeys {
  const plain: string[][] = [[], [], [], []];
  const valued: Valued[] = [];
  for (const [name, state] of states) {
    const bits = (state?.key ? 1 : 0) | (state?.below ? 2 : 0);
    if (!state || state.created === 0) plain[bits]?.push(name);
    else valued.push([name, bits, state.created, ...encodeValue(state.value)]);
  }
  return { plain, valued };
}

export function touchedDirs(states: Iterable<readonly [name: string, added: boolean]>): TouchedDirs {
  const touched: [string[], string[]] = [[], []];
  for (const [name, added] of states) touched[added ? 1 : 0].push(name);
  return touched;
}

export const NOTHING_TOUCHED = { keys: touchedKeys([]), dirs: touchedDirs([]) } as const;

function encodeValue(bytes: Uint8Array): [string] | [string, 'base64'] {
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(value) ? [value.toString()] : [value.toString('base64'), 'base64'];
}

export function encodeMarker({ lock, keys, dirs, digest }: Marker): string {
  const { plain, valued } = keys.touched;
  const wire: WireMarker = {
    v: 1,
    lock,
    from: keys.from,
    to: keys.to,
    touched: plain,
    ...(valued.length > 0 && { values: valued }),
    dirs,
    digest,
  };
  return JSON.stringify(wire);
}

/**
 * Undefined for what is no marker of this version: somebody else wrote there, or a later release. So is one that tells of what came
 * after it was itself written (at `writtenAt`): whoever believed it would hear of nothing until then.
 */
export function decodeMarker(bytes: Uint8Array, writtenAt: number): Marker | undefined {
  try {
    const wire = JSON.parse(textOf(bytes)) as WireMarker;
    const { v, lock, from, to, touched, values = [], dirs, digest } = wire;
    if (v !== 1 || typeof lock !== 'string') return undefined;
    if (!isSpan(from, to, writtenAt) || !isSpan(dirs.from, dirs.to, writtenAt)) return undefined;
    if (!areNames(touched) || !areNames(dirs.touched) || !Array.isArray(values) || !values.every(isValued))
      return undefined;
    return { lock, keys: { from, to, touched: { plain: touched, valued: values } }, dirs, digest };
  } catch {
    return undefined;
  }
}

function textOf(bytes: Uint8Array): string {
  return (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).toString();
}

function isSpan(from: number, to: number, writtenAt: number): boolean {
  return Number.isSafeInteger(from) && Number.isSafeInteger(to) && from >= 0 && from <= to && to < writtenAt;
}

/** Lists of names: each watcher looks through them all, so without making anything on the way. */
function areNames(lists: unknown): boolean {
  if (!Array.isArray(lists)) return false;
  for (const names of lists) {
    if (!Array.isArray(names)) return false;
    for (const name of names) if (typeof name !== 'string') return false;
  }
  return true;
}

function isValued(item: unknown): item is Valued {
  if (!Array.isArray(item)) return false;
  const [name, bits, created, text, encoding] = item;
  const isNumbered = typeof bits === 'number' && typeof created === 'number';
  const isText = typeof name === 'string' && typeof text === 'string';
  return isNumbered && isText && (encoding === undefined || encoding === 'base64');
}

/** How many names the marker tells of. */
export function touchedCount({ keys, dirs }: Marker): number {
  const listed = [...keys.touched.plain, ...dirs.touched].reduce((sum, names) => sum + names.length, 0);
  return listed + keys.touched.valued.length;
}

/** A reader's copy of a directory, followed through markers. */
export interface Replica {
  readonly children: ChildMap;
  readonly revisions: Record<Source, number>;
}

/** What a marker did to a replica. `behind`: it starts after where the replica stands, which must be read anew. */
export type MarkerEffect = 'nothing new' | 'unchanged' | 'changed' | 'behind';

export function applyMarker(replica: Replica, marker: Marker): MarkerEffect {
  const { revisions, children } = replica;
  const { keys, dirs } = marker;
  const [newKeys, newDirs] = [keys.to > revisions.keys, dirs.to > revisions.dirs];
  if (!newKeys && !newDirs) return 'nothing new';
  if ((newKeys && keys.from > revisions.keys) || (newDirs && dirs.from > revisions.dirs)) {
    if (marker.digest === undefined || marker.digest !== digestOf(children)) return 'behind';
    revisions.keys = Math.max(revisions.keys, keys.to);
    revisions.dirs = Math.max(revisions.dirs, dirs.to);
    return 'unchanged';
  }
  let changed = false;
  if (newKeys) {
    changed = applyKeys(children, keys.touched);
    revisions.keys = keys.to;
  }
  if (newDirs) {
    changed = applyDirs(children, dirs.touched) || changed;
    revisions.dirs = dirs.to;
  }
  return changed ? 'changed' : 'unchanged';
}

function applyKeys(children: ChildMap, { plain, valued }: TouchedKeys): boolean {
  let changed = false;
  for (let bits = 0; bits < plain.length; bits += 1) {
    for (const name of plain[bits] ?? []) {
      const before = children.get(name);
      if (children.put(name, before, plainChild(bits, before?.added ?? false))) changed = true;
    }
  }
  for (const [name, bits, created, text, encoding] of valued) {
    const before = children.get(name);
    const value = text === '' ? NO_VALUE : Buffer.from(text, encoding ?? 'utf8');
    const { key, below } = plainChild(bits, false) ?? { key: false, below: false };
    const after = makeChild({ key, below, added: before?.added ?? false, created, value });
    if (children.put(name, before, after)) changed = true;
  }
  return changed;
}

function applyDirs(children: ChildMap, touched: TouchedDirs): boolean {
  let changed = false;
  for (let added = 0; added < touched.length; added += 1) {
    for (const name of touched[added] ?? []) {
      const before = children.get(name);
      if (children.put(name, before, makeChild({ ...before, added: added === 1 }))) changed = true;
    }
  }
  return changed;
}
