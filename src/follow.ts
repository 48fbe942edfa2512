import type { Logger } from './ephemeral/api.ts';
import { EphemeralOverStore } from './ephemeral/ephemeral.ts';
import type { Shared } from './ephemeral/shared.ts';

/** The hosts to try: those that the cluster publishes, then those that were given, in case none of the former answers. */
export class FollowedHosts {
  readonly #given: () => Promise<readonly string[]>;
  #published: readonly string[] = [];

  constructor(
    given: string | readonly string[] | (() => string | readonly string[] | Promise<string | readonly string[]>),
  ) {
    this.#given = async () => [typeof given === 'function' ? await given() : given].flat();
  }

  readonly hosts = async (): Promise<readonly string[]> => [...new Set([...this.#published, ...(await this.#given())])];

  /** Keeps to what is published below `root` from now on, until the client is closed: one key a host, its URLs with commas between. */
  follow(shared: Shared, root: string, logger: Logger | undefined): void {
    new EphemeralOverStore(shared, root)
      .list('/endpoints', { watch: true, values: true, via: 'direct', missing: 'wait' })
      .subscribe({
        next: ({ entries }) => {
          const urls = [...entries.values()].flatMap(({ value }) => value.split(',').filter(Boolean));
          // An empty list says that something is wrong, not where to go.
          if (urls.length > 0) this.#published = urls;
        },
        error: (error: Error) => logger?.warn(`the endpoints under ${root} are not followed: ${error.message}`),
      });
  }
}
