/** Pure: what a directory holds, by name. */

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
  /** Names, sorted. */
  names(): string[];
  /** By name, sorted. */
  entries(): [string, Child][];
}

export function sameChildren(a: Children, b: Children): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [name, child] of a.entries()) if (!sameChild(child, b.get(name))) return false;
  return true;
}
