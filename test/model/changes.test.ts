import test from 'ava';
import fc from 'fast-check';
import { of } from 'rxjs';
import { changes } from '../../src/ephemeral/changes.ts';
import { ChildTree, makeChild } from '../../src/ephemeral/children.ts';
import { makeListing } from '../../src/ephemeral/listing.ts';
import type { Listing, ListingChange } from '../../src/index.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

interface Step {
  readonly name: string;
  readonly key: boolean;
  readonly below: boolean;
  readonly added: boolean;
  readonly created: number;
  /** A listing is made after this step, and its subscriber sees it. */
  readonly isListed: boolean;
  readonly isSeen: boolean;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    name: fc.constantFrom(...NAMES),
    key: fc.boolean(),
    below: fc.boolean(),
    added: fc.boolean(),
    created: fc.constantFrom(0, 1, 2),
    isListed: fc.boolean(),
    isSeen: fc.boolean(),
  }),
  { maxLength: 30 },
);

/** As a listing of somebody else's would come: nothing but what it shows. */
function copied(listing: Listing): Listing {
  const { path, children, directories, entries, revision, epoch, status } = listing;
  return { path, children, directories, revision, epoch, status, ...(entries && { entries }), toJSON: () => ({}) };
}

function told(listings: readonly Listing[]): object[] {
  const seen: ListingChange<Listing>[] = [];
  of(...listings)
    .pipe(changes())
    .subscribe((change) => seen.push(change));
  return seen.map(({ added, removed, changed }) => ({ added, removed, changed }));
}

test('changes() says the same of listings that follow each other, of those with others in between, and of copies', (t) => {
  fc.assert(
    fc.property(steps, (program) => {
      const tree = new ChildTree();
      const listings: Listing[] = [];
      for (const { name, key, below, added, created, isListed, isSeen } of program) {
        const value = Buffer.from(created === 2 ? 'two' : '');
        tree.put(name, tree.get(name), makeChild({ key, below, added, ...(key && { created, value }) }));
        if (!isListed) continue;
        const source = { path: '/d', copy: tree.copy(), revision: 1, epoch: 0, status: 'live' } as const;
        const listing = makeListing(source, true);
        if (isSeen) listings.push(listing);
      }
      t.deepEqual(told(listings), told(listings.map(copied)));
    }),
  );
});
