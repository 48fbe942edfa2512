import sortedBtree from 'sorted-btree';
import type { Clock, Timer } from '../core/clock.ts';

const BTree = sortedBtree.default;

/** A turn of the event loop empties the microtask queue; more than one, as what runs in a turn may wait for another. */
const QUIET_TURNS = 3;
/** Timers at one instant beyond this are taken for a loop that would never let time go on. */
const MAX_TIMERS_AT_ONCE = 100_000;

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to advance. Chance comes from a seed. */
export class ManualClock implements Clock {
  readonly seed: number;
  readonly #timers = new BTree<Entry, undefined>(undefined, (a, b) => a.dueMs - b.dueMs || a.order - b.order);
  #nowMs = 0;
  #order = 0;
  #randomState: number;
  #activity = 0;
  #advancing: Promise<void> = Promise.resolve();

  constructor(seed = 1) {
    this.seed = seed;
    this.#randomState = seed >>> 0;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const entry = { dueMs: this.#nowMs + Math.max(0, ms || 0), order: this.#order++, callback };
    this.#timers.set(entry, undefined);
    this.#activity++;
    return {
      clear: () => {
        if (this.#timers.delete(entry)) this.#activity++;
      },
    };
  }

  /** Mulberry32. */
  random(): number {
    this.#randomState = (this.#randomState + 0x6d2b79f5) >>> 0;
    let mixed = this.#randomState;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * Lets so many seconds pass: runs every timer that falls due, in order of time, and lets all that follows from one settle before
   * the next. Resolves when nothing moves any more. Calls at the same time are done one after the other.
   */
  advance(seconds: number): Promise<void> {
    const done = this.#advancing.then(() => this.#run(seconds * 1_000));
    this.#advancing = done.catch(() => undefined);
    return done;
  }

  async #run(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    let timersAtOnce = 0;
    await this.#settle();
    for (let next = this.#timers.minKey(); next && next.dueMs <= untilMs; next = this.#timers.minKey()) {
      timersAtOnce = next.dueMs > this.#nowMs ? 0 : timersAtOnce + 1;
      if (timersAtOnce > MAX_TIMERS_AT_ONCE) throw new Error(`timers are set without end at ${this.#nowMs} ms`);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      this.#timers.delete(next);
      next.callback();
      await this.#settle();
    }
    this.#nowMs = untilMs;
  }

  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const before = this.#activity;
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#activity !== before) quiet = -1;
    }
  }
}
