import type { Clock, Timer } from '../../src/core/clock.ts';
import type { Chance } from './chance.ts';

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  callback: (() => void) | undefined;
}

/** Timers at one instant beyond this are a loop that would never let time go on. */
const MAX_AT_ONCE = 20_000;

/**
 * The world's time. Like the ManualClock, but a single turn of the event loop is waited for after each timer: nothing in a
 * simulation waits for anything but microtasks, and a run has thousands of timers.
 */
export class SimulatedClock implements Clock {
  readonly #chance: Chance;
  readonly #heap: Entry[] = [];
  #nowMs = 0;
  #order = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  now(): number {
    return this.#nowMs;
  }

  random(): number {
    return this.#chance.next();
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const entry: Entry = { dueMs: this.#nowMs + Math.max(0, ms || 0), order: this.#order++, callback };
    this.#push(entry);
    return {
      clear: () => {
        entry.callback = undefined;
      },
    };
  }

  /** Runs all that falls due until then; `afterEach` looks at what became of each timer, and may throw. */
  async runUntil(untilMs: number, afterEach: () => void): Promise<void> {
    let atOnce = 0;
    await turn();
    for (let next = this.#heap[0]; next && next.dueMs <= untilMs; next = this.#heap[0]) {
      this.#pop();
      if (!next.callback) continue;
      atOnce = next.dueMs > this.#nowMs ? 0 : atOnce + 1;
      if (atOnce > MAX_AT_ONCE) throw new Error(`timers are set without end at ${this.#nowMs} ms`);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
      await turn();
      afterEach();
    }
    this.#nowMs = untilMs;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent] as Entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}

/** The microtask queue is empty when the next turn of the event loop begins. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
