import sortedBTree from 'sorted-btree';

/**
 * Pure: what a directory holds, by name. A copy costs next to nothing (nodes are shared until they are written) and knows how it
 * differs from the copy before it, so that a change costs its own size, whatever the directory's.
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

export const NO_VALUE = new Uint8Array(0);
/** Without values there are but eight states: one object each, however many children. */
const PLAIN: readonly Child[] = Array.from({ length: 8 }, (_, bits) => ({
  key: (bits & 1) !== 0,
  below: (bits & 2) !== 0,
  added: (bits & 4) !== 0,
  created: 0,
  value: NO_VALUE,
}));

/** The child of these parts; undefined when nothing is there. */
export function makeChild(parts: Partial<Child>): Child | undefined {
  const { key = false, below = false, added = false, created = 0, value = NO_VALUE } = parts;
  if (created === 0 && value.length === 0) return plainChild((key ? 1 : 0) | (below ? 2 : 0), added);
  return key || below || added ? { key, below, added, created, value } : undefined;
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

/** Children to be read. */
export interface Children {
  readonly size: number;
  get(name: string): Child | undefined;
  entries(): IterableIterator<[string, Child]>;
  toArray(): [string, Child][];
  keysArray(): string[];
}

/** What of a BTree is used. The package's own type means one thing to Node's resolution and another to a bundler's. */
interface Tree extends Children {
  set(name: string, child: Child): boolean;
  delete(name: string): boolean;
  clone(): Tree;
}

/** Children as they were at one moment, and what changed since the moment before. */
export interface ChildrenCopy {
  readonly children: Children;
  /** The copy before, and of each name touched since what it was then. Undefined for a first copy, and when nothing was touched. */
  readonly since: { readonly children: Children; readonly was: ReadonlyMap<string, Child | undefined> } | undefined;
}

/** One for all trees: only trees of one order can be told apart by what they share. */
const byName = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Children that are followed. */
export class ChildTree implements Children {
  readonly #tree: Tree = new sortedBTree.default<string, Child>(undefined, byName);
  #copied: { readonly children: Children; readonly was: Map<string, Child | undefined> } | undefined;

  get size(): number {
    return this.#tree.size;
  }

  get(name: string): Child | undefined {
    return this.#tree.get(name);
  }

  entries(): IterableIterator<[string, Child]> {
    return this.#tree.entries();
  }

  toArray(): [string, Child][] {
    return this.#tree.toArray();
  }

  keysArray(): string[] {
    return this.#tree.keysArray();
  }

  /** Puts a child in place of what is there under its name, or takes it off; true when that changed anything. */
  put(name: string, before: Child | undefined, after: Child | undefined): boolean {
    if (sameChild(before, after)) return false;
    if (after) this.#tree.set(name, after);
    else this.#tree.delete(name);
    const was = this.#copied?.was;
    if (was && !was.has(name)) was.set(name, before);
    return true;
  }

  /** What it holds now. Whoever asks once is expected to ask again: what changes in between is noted. */
  copy(): ChildrenCopy {
    const since = this.#copied;
    if (since?.was.size === 0) return { children: since.children, since: undefined };
    const children = this.#tree.clone();
    this.#copied = { children, was: new Map() };
    return { children, since };
  }
}

export function sameChildren(a: Children, b: Children): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [name, child] of a.entries()) if (!sameChild(child, b.get(name))) return false;
  return true;
}
