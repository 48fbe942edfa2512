import sortedBTree from 'sorted-btree';
import { splitChild } from '../core/paths.ts';
import type { KeyValue, WatchEvent } from '../core/store.ts';

/**
 * Pure: what a directory holds, from the keys and events of the store. A tree is cheap to copy (its nodes are shared until written),
 * so that each listing keeps the one it was made from, and a change costs its own size whatever the directory's.
 */

/** What is known of one name. Never changed: another state is another object. */
export interface Child {
  /** There is a key of this name. */
  readonly key: boolean;
  /** There are keys below it. */
  readonly below: boolean;
  /** It, or a directory below it, was added. */
  readonly added: boolean;
  /** The key's create revision; 0 where values are not followed. */
  readonly created: number;
  /** The key's value; empty where values are not followed. */
  readonly value: Uint8Array;
}

/** What of a BTree is used. The package's own type means one thing to Node's resolution and another to a bundler's. */
export interface Tree {
  readonly size: number;
  get(name: string): Child | undefined;
  set(name: string, child: Child): boolean;
  delete(name: string): boolean;
  clone(): Tree;
  entries(): IterableIterator<[string, Child]>;
  toArray(): [string, Child][];
  keysArray(): string[];
}

export const NO_VALUE = new Uint8Array(0);
/** Without values there are but eight states: one object each, however many children. */
const PLAIN: readonly Child[] = Array.from({ length: 8 }, (_, bits) => ({
  key: (bits & 1) !== 0,
  below: (bits & 2) !== 0,
  added: (bits & 4) !== 0,
  created: 0,
  value: NO_VALUE,
}));

/** One for all trees: only trees of one order can be told apart by what they share. */
const byName = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export function newTree(): Tree {
  return new sortedBTree.default<string, Child>(undefined, byName);
}

/** The child of these parts; undefined when nothing is there. */
export function makeChild(parts: Partial<Child>): Child | undefined {
  const { key = false, below = false, added = false, created = 0, value = NO_VALUE } = parts;
  const bits = (key ? 1 : 0) | (below ? 2 : 0) | (added ? 4 : 0);
  if (bits === 0) return undefined;
  return created === 0 && value.length === 0 ? PLAIN[bits] : { key, below, added, created, value };
}

/** The child without a value of these parts: bit 0 for a key, bit 1 for keys below. */
export function plainChild(bits: number, added: boolean): Child | undefined {
  const index = added ? bits | 4 : bits;
  return index === 0 ? undefined : PLAIN[index];
}

export function sameChild(a: Child | undefined, b: Child | undefined): boolean {
  if (a === b) return true;
  if (!a || !b) return false;
  return (
    a.key === b.key &&
    a.below === b.below &&
    a.added === b.added &&
    a.created === b.created &&
    Buffer.compare(a.value, b.value) === 0
  );
}

export function sameTree(a: Tree, b: Tree): boolean {
  if (a.size !== b.size) return false;
  for (const [name, child] of a.entries()) if (!sameChild(child, b.get(name))) return false;
  return true;
}

/** Puts a child in place of what the tree has under its name, or takes it off; true when that changed anything. */
export function putChild(tree: Tree, name: string, before: Child | undefined, after: Child | undefined): boolean {
  if (sameChild(before, after)) return false;
  if (after) tree.set(name, after);
  else tree.delete(name);
  return true;
}

/** `keys`: registrations. `dirs`: added directories, which lie elsewhere and are followed beside them. */
export type Source = 'keys' | 'dirs';

/** One directory, followed from its own keys. */
export class Directory {
  readonly tree: Tree = newTree();
  readonly #prefix: Record<Source, number>;
  readonly #withValues: boolean;
  /** Of each child the keys below it. Sets, not counts: an event heard twice, or never, does no lasting harm. */
  readonly #below: Record<Source, Map<string, Set<string>>> = { keys: new Map(), dirs: new Map() };
  readonly #revision: Record<Source, number>;
  #unnameable = 0;

  constructor(prefixes: Record<Source, string>, withValues: boolean, revisions: Record<Source, number>) {
    this.#prefix = { keys: prefixes.keys.length, dirs: prefixes.dirs.length };
    this.#withValues = withValues;
    this.#revision = { ...revisions };
  }

  /** Up to which revision each source has been followed. */
  get revisions(): Readonly<Record<Source, number>> {
    return this.#revision;
  }

  load(source: Source, kvs: readonly KeyValue[]): void {
    for (const kv of kvs) this.#apply(source, 'put', kv);
  }

  /** The name whose state the event changed, or undefined: a refresh, or a key that no path could name. */
  apply(source: Source, event: WatchEvent): string | undefined {
    this.#revision[source] = event.kv.modRevision;
    return this.#apply(source, event.type, event.kv);
  }

  /** How many keys of others that no path could name were met since this was last asked. */
  takeUnnameable(): number {
    const count = this.#unnameable;
    this.#unnameable = 0;
    return count;
  }

  #apply(source: Source, type: WatchEvent['type'], kv: KeyValue): string | undefined {
    const rest = kv.key.slice(this.#prefix[source]);
    const split = splitChild(rest);
    if (!split) {
      // Below the root lie our own keys.
      if (!rest.startsWith('_')) this.#unnameable += 1;
      return undefined;
    }
    const { name, below } = split;
    const before = this.tree.get(name);
    const parts: { -readonly [K in keyof Child]?: Child[K] } = { ...before };
    if (source === 'dirs') parts.added = this.#note('dirs', name, below, type);
    else if (below !== '') parts.below = this.#note('keys', name, below, type);
    else if (type === 'delete') Object.assign(parts, { key: false, created: 0, value: NO_VALUE });
    else {
      parts.key = true;
      if (this.#withValues) Object.assign(parts, { created: kv.createRevision, value: kv.value });
    }
    return putChild(this.tree, name, before, makeChild(parts)) ? name : undefined;
  }

  /** Whether anything is left below the name. */
  #note(source: Source, name: string, below: string, type: WatchEvent['type']): boolean {
    const sets = this.#below[source];
    const set = sets.get(name);
    if (type === 'put') {
      if (set) set.add(below);
      else sets.set(name, new Set([below]));
      return true;
    }
    set?.delete(below);
    if (set?.size === 0) sets.delete(name);
    return sets.has(name);
  }
}
