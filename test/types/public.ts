/** Nothing here runs: `npm run types` checks that the public types say what they should. */
import { map, type Observable } from 'rxjs';
import {
  changes,
  type Entry,
  type Ephemeral,
  type Listing,
  type ListingWithValues,
  type WatchOptions,
} from '../../src/index.ts';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_is: Same<A, B>): void {}

export async function publicTypes(etcd: Ephemeral, flag: boolean): Promise<void> {
  const withValues = etcd.list('/a', { watch: true, values: true });
  same<typeof withValues extends Observable<ListingWithValues> ? true : false, true>(true);
  for await (const listing of withValues) same<typeof listing.entries, ReadonlyMap<string, Entry>>(true);

  const names = etcd.list('/a', { watch: true });
  for await (const listing of names) same<typeof listing.entries, ReadonlyMap<string, Entry> | undefined>(true);

  const once = await etcd.list('/a', { values: true });
  same<typeof once.entries, ReadonlyMap<string, Entry>>(true);
  const perhaps = await etcd.list('/a', { values: flag });
  same<typeof perhaps, Listing>(true);
  JSON.stringify(once);

  withValues
    .pipe(
      changes(),
      map(({ listing }) => listing.entries.size),
    )
    .subscribe();
  same<typeof once.children extends string[] ? true : false, false>(true);
  same<'direct' extends keyof WatchOptions ? true : false, false>(true);
}
