/** Some periods of the services' heartbeats: shorter, and the figure would flutter. */
const WINDOW_MS = 2_400;

/** How fast a sum grows, over the last few seconds. */
export class Rate {
  readonly #samples: { readonly atMs: number; readonly sum: number }[] = [];

  add(atMs: number, sum: number): void {
    this.#samples.push({ atMs, sum });
    // One sample from before the window is kept, so that the window is always covered.
    while ((this.#samples[1]?.atMs ?? atMs) <= atMs - WINDOW_MS) this.#samples.shift();
  }

  get perSecond(): number {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (!first || !last || last.atMs === first.atMs) return 0;
    return ((last.sum - first.sum) * 1_000) / (last.atMs - first.atMs);
  }
}
