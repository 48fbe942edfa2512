import { queryObjects } from 'node:v8';
import test from 'ava';
import fc from 'fast-check';
import { of } from 'rxjs';
import { changes } from '../../src/ephemeral/changes.ts';
import { ChildMap, ChildrenAt } from '../../src/ephemeral/child-map.ts';
import { makeChild } from '../../src/ephemeral/children.ts';
import { makeListing } from '../../src/ephemeral/listing.ts';
import type { Listing, ListingChange } from '../../src/index.ts';

const NAMES = Array.from({ length: 12 }, (_, i) => String.fromCharCode(97 + i));

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
  { maxLength: 300, size: 'max' },
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

/** Runs the program; each listing with what the directory was at that moment. */
function run(program: readonly Step[]): { listing: Listing; shown: Shown; isSeen: boolean }[] {
  const children = new ChildMap();
  const now = new Map<string, Step>();
  const made: { listing: Listing; shown: Shown; isSeen: boolean }[] = [];
  for (const step of program) {
    const { name, key, below, added, created, isListed, isSeen } = step;
    const value = Buffer.from(created === 2 ? 'two' : '');
    children.put(name, children.get(name), makeChild({ key, below, added, ...(key && { created, value }) }));
    if (key || below || added) now.set(name, step);
    else now.delete(name);
    if (!isListed) continue;
    const source = { path: '/d', at: children.now(), revision: 1, epoch: 0, status: 'live' } as const;
    made.push({ listing: makeListing(source, true), shown: shownOf(now), isSeen });
  }
  return made;
}

interface Shown {
  readonly children: readonly string[];
  readonly directories: readonly string[];
  readonly entries: readonly (readonly [string, number])[];
}

function shownOf(now: ReadonlyMap<string, Step>): Shown {
  const steps = [...now.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    children: steps.map(({ name }) => name),
    directories: steps.filter(({ below, added }) => below || added).map(({ name }) => name),
    entries: steps.filter(({ key }) => key).map(({ name, created }) => [name, created]),
  };
}

test('a listing shows its moment, whenever it is read', (t) => {
  fc.assert(
    fc.property(steps, fc.infiniteStream(fc.nat()), (program, order) => {
      const made = run(program);
      while (made.length > 0) {
        const [one] = made.splice((order.next().value as number) % made.length, 1);
        if (!one) continue;
        const { listing, shown } = one;
        const entries = [...(listing.entries ?? [])].map(([name, { created }]) => [name, created]);
        t.deepEqual({ children: listing.children, directories: listing.directories, entries }, shown);
      }
    }),
  );
});

test('changes() says the same of listings that follow each other, of those with others in between, and of copies', (t) => {
  fc.assert(
    fc.property(steps, (program) => {
      const listings = run(program)
        .filter(({ isSeen }) => isSeen)
        .map(({ listing }) => listing);
      t.deepEqual(told(listings), told(listings.map(copied)));
    }),
  );
});

test("a listing that is kept keeps no more than a directory's worth of what came after it (S2)", (t) => {
  const children = new ChildMap();
  const kept = children.now();
  for (let i = 0; i < 10_000; i += 1) {
    const name = `n${i % 7}`;
    children.put(name, children.get(name), i % 2 === 0 ? makeChild({ key: true }) : undefined);
    children.now();
  }
  const reachable = queryObjects(ChildrenAt, { format: 'count' });
  t.true(reachable < 1_100, `${reachable} moments are still reachable`);
  t.is(kept.size, 0);
});
