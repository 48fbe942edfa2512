import { Observable, type OperatorFunction } from 'rxjs';
import sortedBTreeDiff from 'sorted-btree/extended/diffAgainst.js';
import type { Listing, ListingChange } from './api.ts';
import type { Child, Tree } from './directory.ts';
import { sameChild } from './directory.ts';
import { treeOf } from './listing.ts';

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
          const difference = differenceOf(previous, listing);
          previous = listing;
          subscriber.next({ ...difference, listing });
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
}

function differenceOf(before: Listing | undefined, after: Listing): Difference {
  const treeAfter = treeOf(after);
  const treeBefore = before && treeOf(before);
  if (treeAfter && treeBefore) return diffTrees(treeBefore, treeAfter);
  return diffListings(before, after);
}

/** What the two trees share is passed over whole. */
function diffTrees(before: Tree, after: Tree): Difference {
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
      if (!sameChild(seen(was), seen(is))) difference.changed.push(name);
    },
  );
  // The walk goes down the trees, not along the names.
  for (const names of Object.values(difference)) names.sort();
  return difference;
}

/** A child as a listing shows it: what makes it a directory does not matter. */
function seen(child: Child): Child {
  return { ...child, below: child.below || child.added, added: false };
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
