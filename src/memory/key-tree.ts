import sortedBtree from 'sorted-btree';
import type { KeyValue, Target } from '../core/store.ts';

const BTree = sortedBtree.default;

/** The keys of one revision, in etcd's order. Cloning is O(1): clones share what has not changed between them. */
export type KeyTree = InstanceType<typeof BTree<string, KeyValue>>;

export function emptyKeyTree(): KeyTree {
  return new BTree<string, KeyValue>(undefined, compareKeys);
}

/**
 * Orders keys by their bytes in UTF-8, which is the order of code points. UTF-16, which `<` goes by, sorts surrogates (the code
 * points from U+10000 on) before U+E000 to U+FFFF.
 */
export function compareKeys(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA !== unitB) return codePointRank(unitA) - codePointRank(unitB);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

export function targetHas(target: Target, key: string): boolean {
  return 'key' in target ? key === target.key : key.startsWith(target.prefix);
}

/** Those of the target in key order, from the key `from` on. */
export function keysOf(tree: KeyTree, target: Target, from?: string): KeyValue[] {
  if ('key' in target) {
    const kv = tree.get(target.key);
    return kv && (from === undefined || compareKeys(target.key, from) >= 0) ? [kv] : [];
  }
  const first = from !== undefined && compareKeys(from, target.prefix) > 0 ? from : target.prefix;
  const found: KeyValue[] = [];
  for (const kv of tree.values(first)) {
    if (!kv.key.startsWith(target.prefix)) break;
    found.push(kv);
  }
  return found;
}
