import { type Child, type Children, sameChild } from './children.ts';

/**
 * Pure: children that change, and what they were at moments that somebody keeps.
 *
 * Keeping a moment costs nothing and a change costs its own size, whatever the directory's: there is one map, written in place, and
 * the latest moment notes what was there before it was overwritten. Whoever reads an earlier moment goes back through these notes
 * (rerooting: H. G. Baker, "Shallow Binding Makes Functional Arrays Fast", 1991).
 */

type Was = ReadonlyMap<string, Child | undefined>;
const NOTHING: Was = new Map();

/** After so many notes, or as many as there are children, a moment gets a map of its own: what is kept holds on to no more than that. */
const LEAST_NOTES = 1_000;

/** Children as they were at one moment. */
export class ChildrenAt implements Children {
  /** The one in use, or in the end its own. */
  #map: ReadonlyMap<string, Child>;
  #isOwn = false;
  /** Of each name touched between this moment and the next: what it was. */
  #was: Map<string, Child | undefined> | undefined;
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
      if (at.#was?.has(name)) return at.#was.get(name);
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

  /** Of each name touched since an earlier moment: what it was then. Undefined unless that is the moment before this one. */
  since(earlier: ChildrenAt): Was | undefined {
    if (earlier === this) return NOTHING;
    const isNext = earlier.#line === this.#line && earlier.#number + 1 === this.#number;
    return isNext ? (earlier.#was ?? NOTHING) : undefined;
  }

  /** Whether the map was written since. */
  get isPast(): boolean {
    return this.#was !== undefined;
  }

  /** For whoever writes the map, before it does; true for the first note of this name. */
  note(name: string, before: Child | undefined): boolean {
    this.#was ??= new Map();
    if (this.#was.has(name)) return false;
    this.#was.set(name, before);
    return true;
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
      for (const [name, child] of moment.#was ?? NOTHING) {
        if (child) map.set(name, child);
        else map.delete(name);
      }
    }
    this.#map = map;
    this.#isOwn = true;
    this.#next = undefined;
    return map;
  }
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
    if (this.#latest?.note(name, before)) this.#notes += 1;
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
