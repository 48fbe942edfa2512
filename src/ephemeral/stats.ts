import type { Logger, Stats } from './api.ts';

/** Every name given to `Stats` begins with this. */
const PREFIX = 'ephemeral.etcd.';

/** Counts that are kept of what goes on inside; the names are public, see the README. */
export type Counter =
  | 'heartbeat.done'
  | 'heartbeat.failed'
  | 'registration.again'
  | 'list.listings'
  | 'list.relists'
  | 'list.messages'
  | 'list.invalidKeys'
  | 'mirror.masterships'
  | 'mirror.transactions'
  | 'mirror.refreshesCollapsed'
  | 'mirror.usurpations';

export type Timed = 'mirror.lag';

/** Made once: counts are on the way of every message, and a name put together anew is hashed anew. */
const fullNames = new Map<string, string>();

function fullName(name: string): string {
  let full = fullNames.get(name);
  if (full === undefined) {
    full = PREFIX + name;
    fullNames.set(name, full);
  }
  return full;
}

/** Where counts, times and words for an operator go. A `stats` or `logger` of the user's that throws harms nobody. */
export class Telemetry {
  readonly #stats: Stats | undefined;
  readonly #logger: Logger | undefined;

  constructor(stats: Stats | undefined, logger: Logger | undefined) {
    this.#stats = stats;
    this.#logger = logger;
  }

  count(name: Counter, n = 1): void {
    if (n <= 0 || !this.#stats) return;
    // Every message comes by here: no closure for `guarded`.
    try {
      this.#stats.bumpSum(fullName(name), n);
    } catch {
      // It harms nobody.
    }
  }

  time(name: Timed): () => void {
    return this.#start(name);
  }

  /** Times one operation and counts how it ended. */
  async operation<T>(name: string, run: () => Promise<T>): Promise<T> {
    if (!this.#stats) return run();
    const end = this.#start(`${name}.time`);
    try {
      const result = await run();
      guarded(() => this.#stats?.bumpSum(`${PREFIX}${name}.done`, 1));
      return result;
    } catch (error) {
      guarded(() => this.#stats?.bumpSum(`${PREFIX}${name}.failed`, 1));
      throw error;
    } finally {
      end();
    }
  }

  say(level: keyof Logger, message: string): void {
    guarded(() => this.#logger?.[level](message));
  }

  #start(name: string): () => void {
    const timer = guarded(() => this.#stats?.bumpTime(PREFIX + name));
    return () => guarded(() => timer?.end());
  }
}

function guarded<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
