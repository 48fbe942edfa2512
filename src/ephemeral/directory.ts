import { splitChild } from '../core/paths.ts';
import type { KeyValue, WatchEvent } from '../core/store.ts';
import { ChildMap } from './child-map.ts';
import { type Child, makeChild, NO_VALUE } from './children.ts';

/** Pure: what a directory holds, from the keys and events of the store. */

/** `keys`: registrations. `dirs`: added directories, which lie elsewhere and are followed beside them. */
export type Source = 'keys' | 'dirs';

const ABSENT: Child = { key: false, below: false, added: false, created: 0, value: NO_VALUE };

/** One directory, followed from its own keys. */
export class Directory {
  readonly children = new ChildMap();
  readonly #prefix: Record<Source, number>;
  readonly #withValues: boolean;
  /** Of each child the keys below it. Sets, not counts: an event heard twice, or never, does no lasting harm. */
  readonly #below: Record<Source, Map<string, Set<string>>> = { keys: new Map(), dirs: new Map() };
  readonly #revision: Record<Source, number>;
  /** How many keys there are, whatever their names. */
  readonly #count: Record<Source, number> = { keys: 0, dirs: 0 };
  #unnameable = 0;

  constructor(prefixes: Record<Source, string>, withValues: boolean, revisions: Record<Source, number>) {
    this.#prefix = { keys: prefixes.keys.length, dirs: prefixes.dirs.length };
    this.#withValues = withValues;
    this.#revision = { ...revisions };
  }

  /** Up to which revision each source has been followed. */
  get revisions(): Readonly<Record<Source, number>> {
    return this.#revision;
  }

  get counts(): Readonly<Record<Source, number>> {
    return this.#count;
  }

  load(source: Source, kvs: readonly KeyValue[]): void {
    this.#count[source] = kvs.length;
    for (const kv of kvs) this.#apply(source, 'put', kv);
  }

  /** The name whose state the event changed, or undefined: a refresh, or a key that no path could name. */
  apply(source: Source, event: WatchEvent): string | undefined {
    this.#revision[source] = event.kv.modRevision;
    if (event.type === 'delete') this.#count[source] -= 1;
    else if (event.kv.version === 1) this.#count[source] += 1;
    return this.#apply(source, event.type, event.kv);
  }

  /** How many keys of others that no path could name were met since this was last asked. */
  takeUnnameable(): number {
    const count = this.#unnameable;
    this.#unnameable = 0;
    return count;
  }

  #apply(source: Source, type: WatchEvent['type'], kv: KeyValue): string | undefined {
    const rest = kv.key.slice(this.#prefix[source]);
    const split = splitChild(rest);
    if (!split) {
      // Below the root lie our own keys.
      if (!rest.startsWith('_')) this.#unnameable += 1;
      return undefined;
    }
    const { name, below } = split;
    const before = this.children.get(name);
    let { key, below: isAbove, added, created, value } = before ?? ABSENT;
    if (source === 'dirs') added = this.#note('dirs', name, below, type);
    else if (below !== '') isAbove = this.#note('keys', name, below, type);
    else {
      key = type === 'put';
      const isValued = key && this.#withValues;
      created = isValued ? kv.createRevision : 0;
      value = isValued ? kv.value : NO_VALUE;
    }
    return this.children.put(name, before, makeChild({ key, below: isAbove, added, created, value }))
      ? name
      : undefined;
  }

  /** Whether anything is left below the name. */
  #note(source: Source, name: string, below: string, type: WatchEvent['type']): boolean {
    const sets = this.#below[source];
    const set = sets.get(name);
    if (type === 'put') {
      if (set) set.add(below);
      else sets.set(name, new Set([below]));
      return true;
    }
    set?.delete(below);
    if (set?.size === 0) sets.delete(name);
    return sets.has(name);
  }
}
