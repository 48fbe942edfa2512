import type { Clock } from '../core/clock.ts';
import { ListWatch } from '../core/list-watch.ts';
import { Listeners } from '../core/listeners.ts';
import { debugLog, messageOf } from '../core/log.ts';
import type { KeyValue, WatchEvent } from '../core/store.ts';
import type { Ephemeral } from '../ephemeral/api.ts';
import { openShared } from '../ephemeral/connect.ts';
import { EphemeralOverStore } from '../ephemeral/ephemeral.ts';
import { resolveOptions } from '../ephemeral/options.ts';
import type { Shared } from '../ephemeral/shared.ts';
import { sameEndpoint } from '../etcd/endpoints.ts';
import { EtcdStore } from '../etcd/etcd-store.ts';
import type { EndpointBook } from './endpoint-book.ts';
import { WrongClusterError } from './errors.ts';
import { toHex } from './ids.ts';
import type { ElasticConfig } from './options.ts';
import { decodeKeys, type ElasticKeys } from './records.ts';

const log = debugLog('elastic');

/** Seconds. A host is missed this long after its agent died; a stall of less goes unnoticed. */
const SESSION_TTL = 10;
const READ_TIMEOUT_MS = 2_000;

/** A host's client of its own cluster: what it registers, and all of the cluster's keys, followed live. */
export class Coordination {
  /** Something under the namespace has changed. */
  readonly changed = new Listeners<[]>();
  /** Another cluster answers than the one this host belongs to. */
  readonly strayed = new Listeners<[error: WrongClusterError]>();
  readonly shared: Shared;
  /** The user's client. */
  readonly ephemeral: EphemeralOverStore;
  /** The same, within the cluster's own namespace. */
  readonly own: Ephemeral;
  readonly clusterId: string;
  readonly #config: ElasticConfig;
  readonly #book: EndpointBook;
  readonly #kvs = new Map<string, KeyValue>();
  readonly #watch: ListWatch;
  #keys: ElasticKeys | undefined;
  #revision = 0;
  #isComplete = false;
  /** Whether the member that it is connected to is one that clients are told of. */
  #isAtListed = false;

  private constructor(config: ElasticConfig, book: EndpointBook, shared: Shared, clusterId: string) {
    this.#config = config;
    this.#book = book;
    this.shared = shared;
    this.clusterId = clusterId;
    this.ephemeral = new EphemeralOverStore(shared, '');
    this.own = this.ephemeral.withNamespace(config.namespace);
    shared.connection.linkUp.add(() => void this.#verify());
    this.#watch = new ListWatch(
      shared.connection,
      shared.hub,
      [{ prefix: `${config.namespace}/` }],
      { keysOnly: false },
      {
        onSnapshot: ({ targets, revision }) => this.#restart(targets[0] ?? [], revision),
        onEvents: (_, events) => this.#apply(events),
        onRefused: (error) => config.logger.error(`the cluster’s keys cannot be followed: ${error.message}`),
      },
    );
  }

  /** @throws ConnectionError when nothing answers in time, WrongClusterError when another cluster does */
  static async open(
    config: ElasticConfig,
    book: EndpointBook,
    clock: Clock,
    pinnedId: string | undefined,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Coordination> {
    const { credentials, auth } = config;
    const store = new EtcdStore({ hosts: () => book.next(), credentials, auth, clock });
    const options = resolveOptions({ ttl: SESSION_TTL, logger: config.logger });
    const shared = await openShared(store, clock, options, timeoutMs, signal);
    try {
      const clusterId = await readClusterId(shared);
      if (pinnedId !== undefined && clusterId !== pinnedId) throw wrongCluster(store.endpoint, clusterId, pinnedId);
      book.connected();
      // A host registers as soon as it has said who it is: its lease is made meanwhile.
      if (!config.noServer) shared.startSession();
      return new Coordination(config, book, shared, clusterId);
    } catch (error) {
      await shared.close();
      throw error;
    }
  }

  /** All keys under the namespace as last heard of; `undefined` before the first listing. */
  get keys(): ElasticKeys | undefined {
    if (!this.#isComplete) return undefined;
    this.#keys ??= decodeKeys(this.#config.namespace, [...this.#kvs.values()]);
    return this.#keys;
  }

  /** Of the last thing heard of them. */
  get revision(): number {
    return this.#revision;
  }

  async close(): Promise<void> {
    this.#watch.close();
    await this.shared.close();
  }

  #restart(kvs: readonly KeyValue[], revision: number): void {
    this.#revision = revision;
    this.#kvs.clear();
    for (const kv of kvs) this.#kvs.set(kv.key, kv);
    this.#isComplete = true;
    this.#tell();
  }

  #apply(events: readonly WatchEvent[]): void {
    for (const { type, kv } of events) {
      this.#revision = Math.max(this.#revision, kv.modRevision);
      if (type === 'delete') this.#kvs.delete(kv.key);
      else this.#kvs.set(kv.key, kv);
    }
    this.#tell();
  }

  #tell(): void {
    this.#keys = undefined;
    const urls = [...(this.keys?.endpoints.values() ?? [])].flat();
    this.#book.publish(urls);
    this.#leaveUnlisted(urls);
    this.changed.call();
  }

  /** Who is listed no more is about to go: this host's client leaves before it does, and hears what happens then. */
  #leaveUnlisted(urls: readonly string[]): void {
    const { connection } = this.shared;
    const { endpoint } = connection.store;
    const wasListed = this.#isAtListed;
    this.#isAtListed = urls.some((url) => sameEndpoint(url, endpoint));
    if (wasListed && !this.#isAtListed && urls.length > 0) connection.move(`the cluster lists ${endpoint} no more`);
  }

  /** On each new link: an address may belong to another cluster by now. */
  async #verify(): Promise<void> {
    this.#book.connected();
    try {
      const clusterId = await readClusterId(this.shared);
      if (clusterId !== this.clusterId) {
        this.strayed.call(wrongCluster(this.shared.connection.store.endpoint, clusterId, this.clusterId));
      }
    } catch (error) {
      log('the cluster’s id could not be read: %s', messageOf(error));
    }
  }
}

export function wrongCluster(endpoint: string, found: string, pinned: string): WrongClusterError {
  return new WrongClusterError(
    `${endpoint} answers for cluster ${toHex(found)}, and this host belongs to ${toHex(pinned)}: correct the seeds; ` +
      'to move the host to the other cluster, remove its state folder and its data',
  );
}

async function readClusterId({ connection }: Shared): Promise<string> {
  const read = { type: 'range', target: { key: '\0' }, countOnly: true } as const;
  const answer = await connection.attempt((store) => store.range(read, { timeoutMs: READ_TIMEOUT_MS }));
  return answer.header.clusterId;
}
