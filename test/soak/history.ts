/** What the store went through, as its own events told it. Pure. */

export interface Change {
  readonly key: string;
  readonly revision: number;
  /** When it was first heard, by the wall clock, which all processes here share. */
  readonly atMs: number;
  /** `undefined`: deleted. */
  readonly value: string | undefined;
  readonly created: number;
}

/** The directory and the name of a key that a list may show; undefined for what no path can name. */
export function childOf(key: string): { readonly directory: string; readonly name: string } | undefined {
  const match = /^(\/svc\/[^/]+)\/([^/]+)$/.exec(key);
  return match ? { directory: match[1] as string, name: match[2] as string } : undefined;
}

export class History {
  readonly #directories = new Map<string, Map<string, Change[]>>();
  #revision = 0;
  /** Told by one member after another had gone past it in silence. */
  late = 0;
  changes = 0;

  /** Up to here everything is known. */
  get revision(): number {
    return this.#revision;
  }

  /** A member has told all its changes up to this revision. */
  reached(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
  }

  /** Several members tell of the same change: the first one counts. */
  add(change: Change): void {
    const at = childOf(change.key);
    if (!at) return;
    const names = this.#directories.get(at.directory) ?? new Map<string, Change[]>();
    this.#directories.set(at.directory, names);
    const changes = names.get(at.name) ?? [];
    names.set(at.name, changes);
    const before = changes.findLastIndex(({ revision }) => revision <= change.revision);
    if (changes[before]?.revision === change.revision) return;
    if (change.revision <= this.#revision) this.late += 1;
    changes.splice(before + 1, 0, change);
    this.changes += 1;
  }

  of(key: string): readonly Change[] {
    const at = childOf(key);
    return (at && this.#directories.get(at.directory)?.get(at.name)) ?? [];
  }

  keys(): string[] {
    return [...this.#directories].flatMap(([directory, names]) =>
      [...names.keys()].map((name) => `${directory}/${name}`),
    );
  }

  /** The directory's keys at a revision, sorted by name, each as its latest change. */
  directoryAt(directory: string, revision: number): Change[] {
    const names = this.#directories.get(directory) ?? new Map<string, Change[]>();
    const found = [...names.values()].flatMap((changes) => {
      const last = changes.findLast((change) => change.revision <= revision);
      return last && last.value !== undefined ? [last] : [];
    });
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** When the oldest change came that a list at revision `from` does not show and one at `to` does; undefined: nothing did. */
  firstChangeMs(directory: string, withValues: boolean, from: number, to: number): number | undefined {
    let firstMs: number | undefined;
    for (const changes of this.#directories.get(directory)?.values() ?? []) {
      const start = changes.findLastIndex(({ revision }) => revision <= from);
      for (let i = start + 1; i < changes.length; i += 1) {
        const change = changes[i] as Change;
        if (change.revision > to) break;
        if (!isNews(changes[i - 1], change, withValues)) continue;
        firstMs = Math.min(firstMs ?? change.atMs, change.atMs);
        break;
      }
    }
    return firstMs;
  }
}

/** Whether a list would show the difference. */
function isNews(before: Change | undefined, after: Change, withValues: boolean): boolean {
  if ((before?.value === undefined) !== (after.value === undefined)) return true;
  return withValues && (before?.value !== after.value || before?.created !== after.created);
}

/** As the watching processes tell of a listing: names, with values where the list has them. */
export function asTold(changes: readonly Change[], withValues: boolean): string {
  return changes
    .map(({ key, value, created }) => {
      const name = key.slice(key.lastIndexOf('/') + 1);
      return withValues ? `${name}=${value}@${created}` : name;
    })
    .join(' ');
}
