import type { Stats } from '../index.ts';

/** Keeps the sums of what the library counts. */
export class Counters implements Stats {
  readonly #sums = new Map<string, number>();

  /** `name` without the `ephemeral.etcd.` that all names begin with. */
  sum(name: string): number {
    return this.#sums.get(`ephemeral.etcd.${name}`) ?? 0;
  }

  bumpSum(name: string, n: number): void {
    this.#sums.set(name, (this.#sums.get(name) ?? 0) + n);
  }

  bumpTime(): { end(): void } {
    return { end: () => {} };
  }
}
