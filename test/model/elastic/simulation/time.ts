/** Chance that can be had again: the same seed, the same numbers. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A queue of what is to happen, in the order of its times; of equal times, first come first served. */
export class Timeline {
  nowMs = 0;
  readonly #heap: Event[] = [];
  #order = 0;

  at(atMs: number, run: () => void): void {
    this.#heap.push({ atMs: Math.max(atMs, this.nowMs), order: this.#order++, run });
    let child = this.#heap.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!before(this.#heap[child], this.#heap[parent])) break;
      this.#swap(child, parent);
      child = parent;
    }
  }

  /** Runs the next event. Says whether there was one. */
  next(): boolean {
    const [event] = this.#heap;
    const last = this.#heap.pop();
    if (!event || !last) return false;
    if (event !== last) {
      this.#heap[0] = last;
      this.#sink();
    }
    this.nowMs = event.atMs;
    event.run();
    return true;
  }

  #sink(): void {
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      const child = before(this.#heap[left + 1], this.#heap[left]) ? left + 1 : left;
      if (!before(this.#heap[child], this.#heap[parent])) return;
      this.#swap(child, parent);
      parent = child;
    }
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one && other) [this.#heap[a], this.#heap[b]] = [other, one];
  }
}

function before(a: Event | undefined, b: Event | undefined): boolean {
  if (!a) return false;
  return !b || a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
