/**
 * Where to look for the cluster. What the cluster itself publishes counts; seeds, and what was known before a restart, are for the
 * time before that, and for when nothing published answers any more.
 */
export class EndpointBook {
  readonly #fallback: readonly string[];
  #published: readonly string[] = [];
  #local: string | undefined;
  #asked = 0;

  constructor(fallback: readonly string[]) {
    this.#fallback = [...new Set(fallback)];
  }

  /** An empty list is never followed: it says that something is wrong, not where to go. */
  publish(urls: readonly string[]): void {
    if (urls.length > 0) this.#published = [...new Set(urls)];
  }

  /** The member on this host, once it serves: `undefined` while there is none, or it is a learner. */
  prefer(local: string | undefined): void {
    this.#local = local;
  }

  connected(): void {
    this.#asked = 0;
  }

  /** Asked before each attempt to connect: the local one first, then all published, then whatever was ever known. */
  next(): readonly string[] {
    this.#asked += 1;
    if (this.#local !== undefined && this.#asked === 1) return [this.#local];
    const published = this.#local === undefined ? this.#published : [...new Set([this.#local, ...this.#published])];
    if (published.length > 0 && this.#asked <= 2 * published.length + 1) return published;
    return this.all();
  }

  all(): readonly string[] {
    return [...new Set([...(this.#local === undefined ? [] : [this.#local]), ...this.#published, ...this.#fallback])];
  }
}
