import { Observable, type OperatorFunction } from 'rxjs';
import sortedBTreeDiff from 'sorted-btree/extended/diffAgainst.js';
import type { Listing, ListingChange } from './api.ts';
import { type Child, type Children, sameChild } from './children.ts';
import { copyOf } from './listing.ts';

interface Difference {
  readonly added: string[];
  readonly removed: string[];
  readonly changed: string[];
}

/**
 * Turns listings into differences, each against the one that the same subscriber saw before; the first one adds every child. A
 * listing that changes no child (another status, say) gives one with three empty lists.
 */
export function changes<L extends Listing>(): OperatorFunction<L, ListingChange<L>> {
  return (source) =>
    new Observable((subscriber) => {
      let previous: L | undefined;
      return source.subscribe({
        next: (listing) => {
          const { added, removed, changed } = differenceOf(previous, listing);
          previous = listing;
          subscriber.next({ added, removed, changed, listing });
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
}

function differenceOf(before: Listing | undefined, after: Listing): Difference {
  const copy = copyOf(after);
  const children = before && copyOf(before)?.children;
  if (!copy || !children) return diffListings(before, after);
  if (children === copy.children) return { added: [], removed: [], changed: [] };
  if (children === copy.since?.children) return sinceThen(copy.since.was, copy.children);
  return diffTrees(children, copy.children);
}

/** The listing follows the one before directly: what was touched in between is known. */
function sinceThen(was: ReadonlyMap<string, Child | undefined>, is: Children): Difference {
  const difference: Difference = { added: [], removed: [], changed: [] };
  for (const [name, before] of was) {
    const after = is.get(name);
    if (!before) {
      if (after) difference.added.push(name);
    } else if (!after) difference.removed.push(name);
    else if (!looksSame(before, after)) difference.changed.push(name);
  }
  return sorted(difference);
}

/** What the two trees share is passed over whole. */
function diffTrees(before: Children, after: Children): Difference {
  const difference: Difference = { added: [], removed: [], changed: [] };
  type BTree = Parameters<typeof sortedBTreeDiff.default<string, Child, never>>[0];
  sortedBTreeDiff.default<string, Child, never>(
    before as BTree,
    after as BTree,
    (name) => {
      difference.removed.push(name);
    },
    (name) => {
      difference.added.push(name);
    },
    (name, was, is) => {
      if (!looksSame(was, is)) difference.changed.push(name);
    },
  );
  return sorted(difference);
}

/** Names come in the order of what happened, or of a walk down the trees. */
function sorted(difference: Difference): Difference {
  const { added, removed, changed } = difference;
  if (added.length > 1) added.sort();
  if (removed.length > 1) removed.sort();
  if (changed.length > 1) changed.sort();
  return difference;
}

/** As a listing shows them: what makes a child a directory does not matter. */
function looksSame(a: Child, b: Child): boolean {
  const seen = (child: Child) => ({ ...child, below: child.below || child.added, added: false });
  return a === b || sameChild(seen(a), seen(b));
}

function diffListings(before: Listing | undefined, after: Listing): Difference {
  const was = new Set(before?.children);
  const is = new Set(after.children);
  const dirsBefore = new Set(before?.directories);
  const dirsAfter = new Set(after.directories);
  const isChanged = (name: string) => {
    const [a, b] = [before?.entries?.get(name), after.entries?.get(name)];
    return a?.value !== b?.value || a?.created !== b?.created || dirsBefore.has(name) !== dirsAfter.has(name);
  };
  return {
    added: after.children.filter((name) => !was.has(name)),
    removed: [...was].filter((name) => !is.has(name)),
    changed: after.children.filter((name) => was.has(name) && isChanged(name)),
  };
}
