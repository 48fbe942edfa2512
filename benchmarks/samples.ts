/** What was measured, as it is written to the results and as all tables and plots are made from it. */
import { median, quantile } from './statistics.ts';

export interface Sample {
  readonly measurement: string;
  /** Whose: a contestant's name. */
  readonly of: string;
  readonly n: number;
  /** What: `join time`, `messages a watcher` … */
  readonly metric: string;
  readonly unit: string;
  readonly values: number[];
}

export interface Key {
  readonly measurement: string;
  readonly of: string;
  readonly n: number;
  readonly metric: string;
}

export class Samples {
  readonly #samples = new Map<string, Sample>();

  static from(samples: readonly Sample[]): Samples {
    const made = new Samples();
    for (const sample of samples) made.add(sample, sample.unit, ...sample.values);
    return made;
  }

  add({ measurement, of, n, metric }: Key, unit: string, ...values: number[]): void {
    const id = JSON.stringify([measurement, of, n, metric]);
    const present = this.#samples.get(id);
    if (present) present.values.push(...values);
    else this.#samples.set(id, { measurement, of, n, metric, unit, values: [...values] });
  }

  all(): readonly Sample[] {
    return [...this.#samples.values()];
  }

  values({ measurement, of, n, metric }: Key): readonly number[] {
    return this.#samples.get(JSON.stringify([measurement, of, n, metric]))?.values ?? [];
  }

  /** Undefined where nothing was measured. */
  median(key: Key): number | undefined {
    const values = this.values(key);
    return values.length === 0 ? undefined : median(values);
  }

  quantile(key: Key, q: number): number | undefined {
    const values = this.values(key);
    return values.length === 0 ? undefined : quantile(values, q);
  }

  /** The sizes at which this was measured, ascending. */
  sizes(measurement: string, of: string, metric: string): readonly number[] {
    return this.all()
      .filter((sample) => sample.measurement === measurement && sample.of === of && sample.metric === metric)
      .map(({ n }) => n)
      .sort((a, b) => a - b);
  }
}
