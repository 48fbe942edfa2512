import type { Entry, Listing, ListingWithValues } from './api.ts';
import type { ChildrenAt } from './child-map.ts';

/** What all listings are made from. */
export interface ListingSource {
  readonly path: string;
  readonly at: ChildrenAt;
  readonly revision: number;
  readonly epoch: number;
  readonly status: Listing['status'];
}

/** Children are built when they are asked for, and then kept: of a directory with 100,000 most listings are never read in full. */
class NamesListing implements Listing {
  readonly path: string;
  readonly revision: number;
  readonly epoch: number;
  readonly status: Listing['status'];
  readonly #at: ChildrenAt;
  #children: readonly string[] | undefined;
  #directories: readonly string[] | undefined;

  constructor(source: ListingSource) {
    this.path = source.path;
    this.revision = source.revision;
    this.epoch = source.epoch;
    this.status = source.status;
    this.#at = source.at;
  }

  get children(): readonly string[] {
    this.#children ??= Object.freeze(this.#at.names());
    return this.#children;
  }

  get directories(): readonly string[] {
    this.#directories ??= Object.freeze(
      this.#at
        .entries()
        .filter(([, child]) => child.below || child.added)
        .map(([name]) => name),
    );
    return this.#directories;
  }

  toJSON(): object {
    const { path, children, directories, revision, epoch, status } = this;
    return { path, children, directories, revision, epoch, status };
  }

  /** What console.log shows. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }

  static momentOf(listing: Listing): ChildrenAt | undefined {
    return listing instanceof NamesListing ? listing.#at : undefined;
  }
}

class ValuesListing extends NamesListing implements ListingWithValues {
  #entries: ReadonlyMap<string, Entry> | undefined;

  get entries(): ReadonlyMap<string, Entry> {
    if (!this.#entries) {
      const entries = new Map<string, Entry>();
      for (const [name, child] of NamesListing.momentOf(this)?.entries() ?? []) {
        if (child.key) entries.set(name, { value: Buffer.from(child.value).toString(), created: child.created });
      }
      this.#entries = entries;
    }
    return this.#entries;
  }

  override toJSON(): object {
    const { path, children, directories, revision, epoch, status } = this;
    return { path, children, directories, entries: Object.fromEntries(this.entries), revision, epoch, status };
  }
}

export function makeListing(source: ListingSource, withValues: boolean): Listing {
  return withValues ? new ValuesListing(source) : new NamesListing(source);
}

/** The children behind a listing of ours; undefined for one that somebody else made. */
export const momentOf = NamesListing.momentOf;
