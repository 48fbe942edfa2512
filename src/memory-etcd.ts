import { systemClock } from './core/clock.ts';
import { InvalidOptionError } from './core/errors.ts';
import type { ClientOptions, Ephemeral } from './ephemeral/api.ts';
import { openShared } from './ephemeral/connect.ts';
import { EphemeralOverStore } from './ephemeral/ephemeral.ts';
import { CLIENT_OPTION_NAMES, checkNames, checkOneOf, resolveOptions } from './ephemeral/options.ts';
import { ManualClock } from './memory/manual-clock.ts';
import { MemoryServer } from './memory/memory-server.ts';
import type { MemoryStore } from './memory/memory-store.ts';

export interface MemoryEtcdOptions {
  /** `manual`: time stands still but for `advance`. Default `real`. */
  clock?: 'real' | 'manual' | undefined;
}

/** A connection in memory stands at once, or the server was stopped: nothing is gained by waiting longer (ms). */
const CONNECT_TIMEOUT_MS = 10_000;

/** A model of etcd in memory, for unit tests: several clients, leases that expire, and faults. It is checked against real etcd. */
export class MemoryEtcd {
  readonly #clock: ManualClock | undefined;
  readonly #server: MemoryServer;
  readonly #stores = new WeakMap<Ephemeral, MemoryStore>();

  constructor(options: MemoryEtcdOptions = {}) {
    checkNames('MemoryEtcd', options, ['clock']);
    checkOneOf('clock', options.clock, ['real', 'manual']);
    this.#clock = options.clock === 'manual' ? new ManualClock() : undefined;
    this.#server = new MemoryServer({ clock: this.#clock ?? systemClock() });
  }

  /** A client with a connection and a session of its own: what another process would have. */
  async connect(options: ClientOptions = {}): Promise<Ephemeral> {
    checkNames('connect', options, CLIENT_OPTION_NAMES);
    const resolved = resolveOptions(options);
    const store = this.#server.client();
    const shared = await openShared(store, this.#server.clock, resolved, CONNECT_TIMEOUT_MS, undefined);
    const client = new EphemeralOverStore(shared, resolved.namespace);
    this.#stores.set(client, store);
    return client;
  }

  /** Lets so many seconds pass; resolves when everything that follows has been done. Needs `clock: 'manual'`. */
  async advance(seconds: number): Promise<void> {
    if (!this.#clock) throw new InvalidOptionError("advance needs new MemoryEtcd({ clock: 'manual' })");
    if (typeof seconds !== 'number' || !(seconds >= 0 && seconds < Number.POSITIVE_INFINITY)) {
      throw new InvalidOptionError(`advance takes a number of seconds from 0 on, got ${String(seconds)}`);
    }
    await this.#clock.advance(seconds);
  }

  /** The client's process dies: it says nothing more, and what it registered goes with its lease. */
  crash(client: Ephemeral): void {
    this.#server.crash(this.#storeOf(client));
  }

  /** Nothing passes between this client and the store, and nobody is told. */
  partition(client: Ephemeral): void {
    this.#server.partition(this.#storeOf(client));
  }

  /** Ends all partitions. */
  heal(): void {
    this.#server.heal();
  }

  /** Forgets the history up to now, as etcd does when it is compacted. */
  compact(): void {
    this.#server.compact();
  }

  #storeOf(client: Ephemeral): MemoryStore {
    const store = this.#stores.get(client);
    if (!store) throw new InvalidOptionError('this client was not made by connect of this MemoryEtcd');
    return store;
  }
}
