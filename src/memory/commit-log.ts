import { CompactedError, StoreError } from '../core/errors.ts';
import type { WatchEvent } from '../core/store.ts';
import { emptyKeyTree, type KeyTree } from './key-tree.ts';

/** One revision: what changed, and all keys as they were then. */
export interface Commit {
  readonly revision: number;
  readonly events: readonly WatchEvent[];
  readonly keys: KeyTree;
}

/** Every revision since the last compaction. */
export class CommitLog {
  #commits: Commit[];
  #compactRevision: number;

  constructor(commits: readonly Commit[] = [{ revision: 1, events: [], keys: emptyKeyTree() }], compactRevision = -1) {
    this.#commits = [...commits];
    this.#compactRevision = compactRevision;
  }

  get last(): Commit {
    return this.#commits.at(-1) as Commit;
  }

  /** The oldest revision that can be read; -1 when nothing was compacted yet. */
  get compactRevision(): number {
    return this.#compactRevision;
  }

  append(commit: Commit): void {
    this.#commits.push(commit);
  }

  at(revision: number): Commit {
    this.check(revision);
    return this.#commits[revision - this.#first] as Commit;
  }

  /** Throws unless the revision can be read. */
  check(revision: number): void {
    if (revision > this.last.revision) throw new StoreError('the revision asked for is a future revision');
    if (revision < this.#compactRevision) throw new CompactedError(this.#compactRevision);
  }

  /** The commits from a revision on; none when it lies ahead. */
  since(revision: number): readonly Commit[] {
    if (revision < this.#compactRevision) throw new CompactedError(this.#compactRevision);
    return this.#commits.slice(Math.max(0, revision - this.#first));
  }

  /**
   * Drops what is older than `revision`, which itself stays readable. A watch may still start there; `dropDeletes` loses the
   * deletions of that one revision, as etcd did before 3.4.34 and 3.5.16 (etcd#18089).
   */
  compact(revision: number, dropDeletes: boolean): void {
    if (revision <= this.#compactRevision) throw new CompactedError(this.#compactRevision);
    if (revision > this.last.revision) throw new StoreError('cannot compact a future revision');
    const kept = this.#commits.slice(Math.max(0, revision - this.#first));
    const oldest = kept[0];
    if (oldest && dropDeletes) kept[0] = { ...oldest, events: oldest.events.filter((event) => event.type === 'put') };
    this.#commits = kept;
    this.#compactRevision = revision;
  }

  clone(): CommitLog {
    return new CommitLog(this.#commits, this.#compactRevision);
  }

  get #first(): number {
    return (this.#commits[0] as Commit).revision;
  }
}
