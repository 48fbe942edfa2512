import type { Environment } from './environment.ts';
import type { BenchOptions } from './options.ts';
import type { Sample } from './samples.ts';

/** One run, as it is kept. */
export interface Results {
  readonly environment: Environment;
  readonly options: Omit<BenchOptions, 'out'>;
  /** Who did not take part, and how to get them. */
  readonly missing: Readonly<Record<string, string>>;
  /** Who did not take part with the most clients, and why. */
  readonly bounded?: Readonly<Record<string, string>>;
  /** How long each measurement took. */
  readonly seconds?: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
  readonly samples: readonly Sample[];
}
