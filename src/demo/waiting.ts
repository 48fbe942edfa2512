import { setTimeout as sleep } from 'node:timers/promises';

/** A bound on waiting for what ought to come within a few seconds. */
const PATIENCE_MS = 45_000;

interface Waiter {
  check(): void;
  fail(error: unknown): void;
}

/** Waits for conditions of a state that tells when it has changed, all of them ended by one signal. */
export class Waiting {
  readonly #signal: AbortSignal;
  readonly #waiters = new Set<Waiter>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => {
      for (const waiter of [...this.#waiters]) waiter.fail(signal.reason);
    });
  }

  changed(): void {
    for (const waiter of [...this.#waiters]) waiter.check();
  }

  /** Resolves to the first thing other than undefined that `condition` gives, as it was given at that very moment. */
  until<T>(condition: () => T | undefined, what: string): Promise<T> {
    this.#signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#waiters.delete(waiter);
        clearTimeout(timer);
      };
      const waiter: Waiter = {
        check: () => {
          const value = condition();
          if (value === undefined) return;
          done();
          resolve(value);
        },
        fail: (error) => {
          done();
          reject(error);
        },
      };
      const late = () =>
        waiter.fail(new Error(`waited ${PATIENCE_MS / 1_000} s for ${what}: is this machine very busy? Try again`));
      const timer = setTimeout(late, PATIENCE_MS);
      this.#waiters.add(waiter);
      waiter.check();
    });
  }

  /** As `promise` settles, unless the signal comes first. */
  settled<T>(promise: Promise<T>): Promise<T> {
    const signal = this.#signal;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
    });
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#signal }).catch(() => {});
    this.#signal.throwIfAborted();
  }
}
