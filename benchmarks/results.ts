import type { Environment } from './environment.ts';
import type { BenchOptions } from './options.ts';
import type { Sample } from './samples.ts';

/** One run, as it is kept. */
export interface Results {
  readonly environment: Environment;
  readonly options: BenchOptions;
  /** Who did not take part, and how to get them. */
  readonly missing: Readonly<Record<string, string>>;
  readonly faults: readonly string[];
  readonly samples: readonly Sample[];
}
