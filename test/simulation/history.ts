import { splitChild } from '../../src/core/paths.ts';
import { directoryKeys } from '../../src/ephemeral/keys.ts';
import { type Commit, CommitLog } from '../../src/memory/commit-log.ts';
import { type KeyTree, keysOf } from '../../src/memory/key-tree.ts';

/** A directory as the store had it at one revision. */
export interface TrueDirectory {
  /** Names of registrations and of directories with keys below, with what a listing with values shows of the former. */
  readonly entries: ReadonlyMap<string, { readonly value: string; readonly created: number }>;
  readonly below: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  /** Names added as directories, or with such below. */
  readonly added: ReadonlySet<string>;
}

const decoder = new TextDecoder();

/** The store's history without a gap; a restore or a wipe begins another one, which shares what came before. */
export class History {
  readonly lineages: Lineage[] = [new Lineage(new CommitLog().last)];

  get current(): Lineage {
    return this.lineages.at(-1) as Lineage;
  }

  /** The index of the present one. */
  get lineage(): number {
    return this.lineages.length - 1;
  }

  add(commit: Commit): void {
    this.current.add(commit);
  }

  branch(lineage: number, revision: number): void {
    this.lineages.push((this.lineages[lineage] as Lineage).upTo(revision));
  }

  wipe(): void {
    this.lineages.push(new Lineage(new CommitLog().last));
  }
}

export class Lineage {
  readonly commits: Commit[];
  /** All keys ever put: a directory that was added lies elsewhere than registrations, so a listing may show it late. */
  readonly everPut = new Set<string>();
  readonly #directories = new Map<string, TrueDirectory>();

  constructor(first: Commit, ...others: readonly Commit[]) {
    this.commits = [first];
    for (const commit of others) this.add(commit);
  }

  get last(): Commit {
    return this.commits.at(-1) as Commit;
  }

  add(commit: Commit): void {
    this.commits.push(commit);
    for (const { type, kv } of commit.events) if (type === 'put') this.everPut.add(kv.key);
  }

  upTo(revision: number): Lineage {
    const [first, ...others] = this.commits.slice(0, revision);
    return new Lineage(first as Commit, ...others);
  }

  /** All keys at a revision; undefined when there never was such a one. Revisions begin at 1 and have no gap. */
  at(revision: number): KeyTree | undefined {
    return this.commits[revision - 1]?.keys;
  }

  wasEverAdded(namespace: string, path: string, name: string): boolean {
    const key = directoryKeys(namespace, path).addedBelow + name;
    return [...this.everPut].some((put) => put === key || put.startsWith(`${key}/`));
  }

  directory(namespace: string, path: string, revision: number): TrueDirectory | undefined {
    const id = `${revision} ${path}`;
    let directory = this.#directories.get(id);
    const keys = this.at(revision);
    if (!directory && keys) {
      directory = trueDirectory(keys, namespace, path);
      this.#directories.set(id, directory);
    }
    return directory;
  }
}

export function trueDirectory(keys: KeyTree, namespace: string, path: string): TrueDirectory {
  const at = directoryKeys(namespace, path);
  const entries = new Map<string, { value: string; created: number }>();
  const below = new Set<string>();
  const added = new Set<string>();
  for (const kv of keysOf(keys, { prefix: at.children })) {
    const child = splitChild(kv.key.slice(at.children.length));
    if (!child) continue;
    if (child.below !== '') below.add(child.name);
    else entries.set(child.name, { value: decoder.decode(kv.value), created: kv.createRevision });
  }
  for (const kv of keysOf(keys, { prefix: at.addedBelow })) {
    const child = splitChild(kv.key.slice(at.addedBelow.length));
    if (child) added.add(child.name);
  }
  return { entries, below, added, names: new Set([...entries.keys(), ...below]) };
}
