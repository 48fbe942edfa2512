import type { Clock, Timer } from '../../src/core/clock.ts';
import type { Chance } from './chance.ts';

/**
 * The event loop of one simulated process: whatever enters it, timers and answers alike, passes here. It can be held up, as by a
 * long computation or SIGSTOP, and it can die.
 */
export class EventLoop implements Clock {
  readonly #world: Clock;
  readonly #chance: Chance;
  readonly #waiting: (() => void)[] = [];
  #state: 'running' | 'held' | 'catching up' | 'dead' = 'running';
  #timers = 0;
  /** When it last stood still. */
  heldMs = Number.NEGATIVE_INFINITY;

  constructor(world: Clock, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  /** Timers set and neither fired nor cleared. */
  get timers(): number {
    return this.#timers;
  }

  /** Runs it now, or after what waits before it. */
  pass(run: () => void): void {
    if (this.#state === 'running') run();
    else if (this.#state !== 'dead') this.#waiting.push(run);
  }

  hold(): void {
    if (this.#state !== 'dead') this.#state = 'held';
  }

  /** What has waited runs in order, each with all that follows from it before the next. */
  release(): void {
    if (this.#state !== 'held') return;
    this.#state = 'catching up';
    this.#catchUp();
  }

  kill(): void {
    this.#state = 'dead';
    this.#waiting.length = 0;
  }

  now(): number {
    return this.#world.now();
  }

  random(): number {
    return this.#chance.next();
  }

  setTimeout(callback: () => void, ms: number): Timer {
    this.#timers += 1;
    let isOver = false;
    const end = () => {
      if (isOver) return false;
      isOver = true;
      this.#timers -= 1;
      return true;
    };
    const timer = this.#world.setTimeout(() => {
      this.pass(() => {
        if (end()) callback();
      });
    }, ms);
    return {
      clear: () => {
        if (end()) timer.clear();
      },
    };
  }

  #catchUp(): void {
    if (this.#state !== 'catching up') return;
    const next = this.#waiting.shift();
    this.heldMs = this.#world.now();
    if (!next) {
      this.#state = 'running';
      return;
    }
    next();
    this.#world.setTimeout(() => this.#catchUp(), 0);
  }
}
