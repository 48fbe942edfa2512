import type { Logger } from './ephemeral/api.ts';
import { EphemeralOverStore } from './ephemeral/ephemeral.ts';
import type { Shared } from './ephemeral/shared.ts';
import { sameEndpoint } from './etcd/endpoints.ts';

/** The hosts to try: those that the cluster publishes; those that were given as well once none of the former has answered. */
export class FollowedHosts {
  readonly #given: () => Promise<readonly string[]>;
  #published: readonly string[] = [];
  /** Attempts to connect since the last one that succeeded. */
  #asked = 0;

  constructor(
    given: string | readonly string[] | (() => string | readonly string[] | Promise<string | readonly string[]>),
  ) {
    this.#given = async () => [typeof given === 'function' ? await given() : given].flat();
  }

  readonly hosts = async (): Promise<readonly string[]> => {
    this.#asked += 1;
    if (this.#published.length > 0 && this.#asked <= this.#published.length) return this.#published;
    return [...new Set([...this.#published, ...(await this.#given())])];
  };

  /** Keeps to what is published below `root` from now on, until the client is closed: one key a host, its URLs with commas between. */
  follow(shared: Shared, root: string, logger: Logger | undefined): void {
    shared.connection.linkUp.add(() => {
      this.#asked = 0;
    });
    new EphemeralOverStore(shared, root)
      .list('/endpoints', { watch: true, values: true, via: 'direct', missing: 'wait' })
      .subscribe({
        next: ({ entries }) => {
          const urls = [...entries.values()].flatMap(({ value }) => value.split(',').filter(Boolean));
          // An empty list says that something is wrong, not where to go.
          if (urls.length > 0) this.#publish(shared, urls);
        },
        error: (error: Error) => logger?.warn(`the endpoints under ${root} are not followed: ${error.message}`),
      });
  }

  /** Who is listed no more is about to go: its clients leave before it does. */
  #publish({ connection }: Shared, urls: readonly string[]): void {
    const former = this.#published;
    this.#published = urls;
    const { endpoint } = connection.store;
    const isEndpoint = (url: string) => sameEndpoint(url, endpoint);
    if (former.some(isEndpoint) && !urls.some(isEndpoint)) connection.move(`its cluster lists ${endpoint} no more`);
  }
}
