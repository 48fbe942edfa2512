import { Observable, type OperatorFunction } from 'rxjs';
import type { Listing, ListingChange } from './api.ts';
import type { Touched } from './child-map.ts';
import { type Child, type Children, sameChild } from './children.ts';
import { momentOf } from './listing.ts';

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
  const is = momentOf(after);
  const was = before && momentOf(before);
  const touched = was && is?.since(was);
  return is && touched ? sinceThen(touched, is) : diffListings(before, after);
}

/** The listing follows the one before directly: what was touched in between is known. */
function sinceThen({ names, before }: Touched, is: Children): Difference {
  const difference = { added: [] as string[], removed: [] as string[], changed: [] as string[] };
  for (let i = 0; i < names.length; i += 1) {
    const name = names[i] as string;
    const [was, now] = [before[i], is.get(name)];
    if (!was) {
      if (now) difference.added.push(name);
    } else if (!now) difference.removed.push(name);
    else if (!looksSame(was, now)) difference.changed.push(name);
  }
  if (names.length > 1) sortAll(difference);
  return difference;
}

/** They come in the order of what happened. */
function sortAll({ added, removed, changed }: Difference): void {
  for (const names of [added, removed, changed]) if (names.length > 1) names.sort();
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
