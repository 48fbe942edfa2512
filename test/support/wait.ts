import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/** A bound on all waiting, not an expectation: a slow machine must not fail a test. */
export const PATIENCE_MS = 30_000;

const POLL_MS = 5;

type Falsy = false | 0 | '' | null | undefined;

/**
 * Polls `condition` until it gives something truthy, and resolves to that. What it throws counts as not yet. The error after
 * `boundMs` says what was awaited and what the condition gave last.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  boundMs = PATIENCE_MS,
): Promise<Exclude<T, Falsy>> {
  const endMs = performance.now() + boundMs;
  let last: unknown;
  do {
    try {
      const value = await condition();
      if (value) return value as Exclude<T, Falsy>;
      last = value;
    } catch (error) {
      last = error;
    }
    await sleep(POLL_MS);
  } while (performance.now() < endMs);
  throw new Error(`waited ${boundMs / 1_000} s for ${what}; the last value was ${inspect(last, { depth: 4 })}`);
}

/** Settles as `promise` does; rejects when that takes longer than `boundMs`. */
export async function within<T>(promise: Promise<T>, what: string, boundMs = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${boundMs / 1_000} s for ${what}`)), boundMs);
  });
  try {
    return await Promise.race([promise, bound]);
  } finally {
    clearTimeout(timer);
  }
}
