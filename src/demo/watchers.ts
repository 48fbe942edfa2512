import { EtcdEphemeral } from '../index.ts';
import { Counters } from './counters.ts';
import { aborted, type Parent } from './parent.ts';
import { DIRECTORY, type Store, TTL, type WatcherReport, type WatchersReport, type WatchersTask } from './tasks.ts';

type Via = 'mirror' | 'direct';

/** A watcher with a client, and so a connection, of its own: as far as etcd can tell, another process. */
class Watcher {
  readonly #client: EtcdEphemeral;
  readonly #stats: Counters;
  #list = '';

  private constructor(client: EtcdEphemeral, stats: Counters) {
    this.#client = client;
    this.#stats = stats;
  }

  /** Resolves once it has its first list. */
  static async start(store: Store, via: Via, onError: (error: unknown) => void): Promise<Watcher> {
    const stats = new Counters();
    const client = await EtcdEphemeral.connect({
      hosts: [...store.endpoints],
      namespace: store.namespace,
      ttl: TTL,
      // As for the gateway: mastership stays among the services.
      candidate: false,
      stats,
    });
    const watcher = new Watcher(client, stats);
    await new Promise<void>((resolve) => {
      client.list(DIRECTORY, { watch: true, values: true, via, missing: 'wait' }).subscribe({
        next: ({ children }) => {
          watcher.#list = children.join(' ');
          resolve();
        },
        error: onError,
      });
    });
    return watcher;
  }

  get report(): WatcherReport {
    return { heard: this.#stats.sum('list.messages'), list: this.#list };
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/** Watchers of both kinds, always as many of the one as of the other. */
export async function watchers({ store }: WatchersTask, parent: Parent<WatchersReport>): Promise<void> {
  const kinds: Record<Via, Watcher[]> = { mirror: [], direct: [] };
  const start = async (via: Via) => {
    kinds[via].push(await Watcher.start(store, via, (error) => parent.fail(error)));
  };
  parent.onGrow = async (to) => {
    try {
      const missing = Array.from({ length: to - kinds.mirror.length });
      await Promise.all(missing.flatMap(() => [start('mirror'), start('direct')]));
    } catch (error) {
      parent.fail(error);
    }
  };
  const reports = (via: Via) => kinds[via].map(({ report }) => report);
  parent.ready(() => ({ mirrored: reports('mirror'), direct: reports('direct') }));

  await aborted(parent.stopped);
  await Promise.all(Object.values(kinds).flatMap((some) => some.map((watcher) => watcher.close())));
}
