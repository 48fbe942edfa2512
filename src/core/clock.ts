import { uptime } from 'node:os';
import { onAbort } from './on-abort.ts';

/** Time and chance, as arguments: a test passes its own. */
export interface Clock {
  /** Milliseconds since some start. Never falls, and counts the time a machine was suspended. */
  now(): number;
  /** Calls back once, after at least so many milliseconds. */
  setTimeout(callback: () => void, ms: number): Timer;
  /** From 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

export interface Timer {
  clear(): void;
}

/** How far the system's uptime may be ahead of the monotonic clock by rounding alone: it is given in whole seconds. */
const UPTIME_GRAIN_MS = 1_000;
/** The uptime is looked at this often: after a suspend, time is at most so much behind. */
const UPTIME_LOOK_MS = 20;

/** The longest delay that a timer of Node's takes (2^31 - 1 ms); beyond it, it would fire at once. A ttl may be longer. */
const MAX_TIMER_MS = 2_147_483_647;

/** When a clock began to count. */
export interface ClockOrigin {
  readonly uptimeMs: number;
  readonly monotonicMs: number;
}

/** Not `performance.now()`, which starts anew in each thread. */
function monotonicNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * The machine's clock: the larger of the monotonic clock and the system's uptime. The monotonic clock stands still while Linux is
 * suspended, the uptime does not; neither is moved by setting the wall clock.
 */
export function systemClockFrom({ uptimeMs, monotonicMs: startMs }: ClockOrigin): Clock {
  let suspendedMs = 0;
  let nextLookMs = 0;
  return {
    now() {
      const monotonicMs = monotonicNow() - startMs;
      // Node reads a file for it, so not on every call.
      if (monotonicMs >= nextLookMs) {
        nextLookMs = monotonicMs + UPTIME_LOOK_MS;
        suspendedMs = Math.max(suspendedMs, uptime() * 1_000 - uptimeMs - monotonicMs - UPTIME_GRAIN_MS);
      }
      return monotonicMs + suspendedMs;
    },
    setTimeout(callback, ms) {
      let leftMs = ms;
      let handle: NodeJS.Timeout;
      const arm = () => {
        const partMs = Math.min(leftMs, MAX_TIMER_MS);
        leftMs -= partMs;
        handle = setTimeout(leftMs > 0 ? arm : callback, partMs);
      };
      arm();
      return { clear: () => clearTimeout(handle) };
    },
    random: Math.random,
  };
}

const ORIGIN: ClockOrigin = { uptimeMs: uptime() * 1_000, monotonicMs: monotonicNow() };

/** One for the thread, as what it looks at concerns them all. */
const SYSTEM_CLOCK = systemClockFrom(ORIGIN);

/** For another thread of this process, whose times are to be compared with ours. */
export function systemClockOrigin(): ClockOrigin {
  return ORIGIN;
}

export function systemClock(): Clock {
  return SYSTEM_CLOCK;
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted before. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimeout(() => {
      off?.();
      resolve();
    }, ms);
    const off =
      signal &&
      onAbort(signal, () => {
        timer.clear();
        reject(signal.reason);
      });
  });
}
