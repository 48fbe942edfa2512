import { type Child, type Children, sameChild } from './children.ts';

/**
 * Pure: children that change, and what they were at moments that somebody keeps.
 *
 * Keeping a moment costs nothing and a change costs its own size, whatever the directory's: there is one map, written in place, and
 * the latest moment notes what was there before it was overwritten. Whoever reads an earlier moment goes back through these notes
 * (rerooting: H. G. Baker, "Shallow Binding Makes Functional Arrays Fast", 1991).
 */

/** Names that were touched, each once, and what each was before. */
export interface Touched {
  readonly names: readonly string[];
  readonly before: readonly (Child | undefined)[];
}

const NOTHING: Touched = { names: [], before: [] };

/** After so many notes, or as many as there are children, a moment gets a map of its own: what is kept holds on to no more than that. */
const LEAST_NOTES = 1_000;

/** Children as they were at one moment. */
export class ChildrenAt implements Children {
  /** The one in use, or in the end its own. */
  #map: ReadonlyMap<string, Child>;
  #isOwn = false;
  /** What was touched between this moment and the next, in order: a name may be here again, and then its first note counts. */
  readonly #names: string[] = [];
  readonly #before: (Child | undefined)[] = [];
  /** The notes by name, as far as they were asked for so far. */
  #index: Map<string, Child | undefined> | undefined;
  #indexed = 0;
  #next: ChildrenAt | undefined;
  /** Moments of one map have one line and are numbered. */
  readonly #line: object;
  readonly #number: number;

  constructor(map: ReadonlyMap<string, Child>, line: object, number: number) {
    this.#map = map;
    this.#line = line;
    this.#number = number;
  }

  get size(): number {
    return this.#read().size;
  }

  get(name: string): Child | undefined {
    let at: ChildrenAt = this;
    while (!at.#isOwn) {
      const was = at.#was();
      if (was?.has(name)) return was.get(name);
      if (!at.#next) break;
      at = at.#next;
    }
    return at.#map.get(name);
  }

  names(): string[] {
    return sortedNames(this.#read());
  }

  entries(): [string, Child][] {
    return sortedEntries(this.#read());
  }

  /** What was touched since an earlier moment. Undefined unless that is the moment before this one. */
  since(earlier: ChildrenAt): Touched | undefined {
    if (earlier === this) return NOTHING;
    const isNext = earlier.#line === this.#line && earlier.#number + 1 === this.#number;
    return isNext ? earlier.#touched() : undefined;
  }

  /** Whether the map was written since. */
  get isPast(): boolean {
    return this.#names.length > 0;
  }

  /** For whoever writes the map, before it does. Every watcher does so with every change: no name is looked up for it. */
  note(name: string, before: Child | undefined): void {
    this.#names.push(name);
    this.#before.push(before);
  }

  /** For whoever writes the map. `cut`: neither this moment nor those before shall need any later one. */
  precede(next: ChildrenAt, cut: boolean): void {
    if (cut) this.#read();
    else this.#next = next;
  }

  #read(): ReadonlyMap<string, Child> {
    if (this.#isOwn || !this.isPast) return this.#map;
    const later: ChildrenAt[] = [];
    let at: ChildrenAt | undefined = this;
    for (; at && !at.#isOwn; at = at.#next) later.push(at);
    const map = new Map((at ?? this).#map);
    for (const moment of later.reverse()) {
      for (const [name, child] of moment.#was() ?? []) {
        if (child) map.set(name, child);
        else map.delete(name);
      }
    }
    this.#map = map;
    this.#isOwn = true;
    this.#next = undefined;
    return map;
  }

  #was(): ReadonlyMap<string, Child | undefined> | undefined {
    const { length } = this.#names;
    if (length === 0) return undefined;
    this.#index ??= new Map();
    for (; this.#indexed < length; this.#indexed += 1) {
      const name = this.#names[this.#indexed] as string;
      if (!this.#index.has(name)) this.#index.set(name, this.#before[this.#indexed]);
    }
    return this.#index;
  }

  #touched(): Touched {
    if (areAscending(this.#names)) return { names: this.#names, before: this.#before };
    const was = this.#was();
    return was ? { names: [...was.keys()], before: [...was.values()] } : NOTHING;
  }
}

/** Then none is there twice. Those of a marker mostly are. */
function areAscending(names: readonly string[]): boolean {
  for (let i = 1; i < names.length; i += 1) if ((names[i - 1] as string) >= (names[i] as string)) return false;
  return true;
}

/** Children that are followed. */
export class ChildMap implements Children {
  readonly #map = new Map<string, Child>();
  readonly #line = {};
  #latest: ChildrenAt | undefined;
  #count = 0;
  /** Since a moment last got a map of its own. */
  #notes = 0;

  get size(): number {
    return this.#map.size;
  }

  get(name: string): Child | undefined {
    return this.#map.get(name);
  }

  names(): string[] {
    return sortedNames(this.#map);
  }

  entries(): [string, Child][] {
    return sortedEntries(this.#map);
  }

  /** Puts a child in place of what is there under its name, or takes it off; true when that changed anything. */
  put(name: string, before: Child | undefined, after: Child | undefined): boolean {
    if (sameChild(before, after)) return false;
    if (this.#latest) {
      this.#latest.note(name, before);
      this.#notes += 1;
    }
    if (after) this.#map.set(name, after);
    else this.#map.delete(name);
    return true;
  }

  /** What it holds now, to be kept. */
  now(): ChildrenAt {
    const before = this.#latest;
    if (before && !before.isPast) return before;
    this.#count += 1;
    const now = new ChildrenAt(this.#map, this.#line, this.#count);
    this.#latest = now;
    if (!before) return now;
    const cut = this.#notes >= Math.max(LEAST_NOTES, this.#map.size);
    before.precede(now, cut);
    if (cut) this.#notes = 0;
    return now;
  }
}

/** Mostly in order already, which the engine's sort makes use of: names were read in order, and later ones come after them. */
function sortedNames(map: ReadonlyMap<string, Child>): string[] {
  return [...map.keys()].sort();
}

function sortedEntries(map: ReadonlyMap<string, Child>): [string, Child][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
