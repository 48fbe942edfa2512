/** One test's own part of a store, with clients in it and a way past them. */
import type { ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type { KeyValue, Store } from '../../src/core/store.ts';
import type { ClientOptions, Ephemeral } from '../../src/ephemeral/api.ts';
import { openShared } from '../../src/ephemeral/connect.ts';
import { EphemeralOverStore } from '../../src/ephemeral/ephemeral.ts';
import { resolveOptions } from '../../src/ephemeral/options.ts';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { EtcdEphemeral } from '../../src/index.ts';
import type { MemoryServer } from '../../src/memory/memory-server.ts';
import { CountingStore } from './counting-store.ts';
import type { EtcdProcess } from './etcd-process.ts';

const CALL = { timeoutMs: 10_000 };
const CONNECT_MS = 10_000;

/** Somewhere to run the tests of the contract: a real etcd, or the model of one. */
export interface World {
  readonly clock: Clock;
  newStore(): Store;
  connect(options: ClientOptions): Promise<Ephemeral>;
}

export function realWorld(etcd: Pick<EtcdProcess, 'endpoint'>): World {
  const clock = systemClock();
  return {
    clock,
    newStore: () => new EtcdStore({ hosts: etcd.endpoint, clock }),
    connect: (options) => EtcdEphemeral.connect({ ...options, hosts: etcd.endpoint }),
  };
}

export function memoryWorld(server: MemoryServer): World {
  const { clock } = server;
  const newStore = () => server.client();
  return { clock, newStore, connect: (options) => connectOver(newStore(), clock, options) };
}

/** A client over a store of the test's own. */
export async function connectOver(store: Store, clock: Clock, options: ClientOptions = {}): Promise<Ephemeral> {
  const resolved = resolveOptions(options);
  return new EphemeralOverStore(await openShared(store, clock, resolved, CONNECT_MS, undefined), resolved.namespace);
}

let spaces = 0;

export class Space {
  readonly namespace: string;
  readonly #t: ExecutionContext;
  readonly #world: World;
  readonly #store: Store;

  private constructor(t: ExecutionContext, world: World, namespace: string) {
    this.#t = t;
    this.#world = world;
    this.#store = world.newStore();
    this.namespace = namespace;
    t.teardown(() => this.#store.close());
  }

  static async open(t: ExecutionContext, world: World, namespace = `/space-${++spaces}-`): Promise<Space> {
    const space = new Space(t, world, namespace);
    await space.#store.connect(CALL);
    return space;
  }

  /** A client with ttl 5 (a busy machine may stand still for longer than 2 s) that is closed after the test. */
  async connect(options: ClientOptions = {}): Promise<Ephemeral> {
    const client = await this.#world.connect({ ttl: 5, namespace: this.namespace, ...options });
    this.#t.teardown(() => client.close());
    return client;
  }

  /** A client and what passes between it and the store. */
  async connectCounted(options: ClientOptions = {}): Promise<{ client: Ephemeral; traffic: CountingStore }> {
    const traffic = new CountingStore(this.#world.newStore());
    const client = await connectOver(traffic, this.#world.clock, { ttl: 5, namespace: this.namespace, ...options });
    this.#t.teardown(() => client.close());
    return { client, traffic };
  }

  /** What someone without this library does. Resolves with the revision. */
  async put(path: string, value: string | Uint8Array, lease?: string): Promise<number> {
    const key = this.namespace + path;
    const { header } = await this.#store.txn({ compares: [], success: [{ type: 'put', key, value, lease }] }, CALL);
    return header.revision;
  }

  async remove(path: string): Promise<number> {
    const target = { key: this.namespace + path };
    const { header } = await this.#store.txn({ compares: [], success: [{ type: 'delete', target }] }, CALL);
    return header.revision;
  }

  /** A lease that nobody renews, unless the test does. */
  async grant(ttl: number): Promise<string> {
    return (await this.#store.leaseGrant(ttl, CALL)).id;
  }

  revoke(lease: string): Promise<void> {
    return this.#store.leaseRevoke(lease, CALL);
  }

  /** Renews a lease until the test ends, as its owner would. */
  keepAlive(lease: string): void {
    const stream = this.#store.openKeepAlive({ onAlive: () => {}, onEnd: () => {} });
    const timer = setInterval(() => stream.send(lease), 500);
    stream.send(lease);
    this.#t.teardown(() => clearInterval(timer));
  }

  /** Every key below a path, as it is stored. */
  async keys(prefix = ''): Promise<readonly KeyValue[]> {
    return (await this.#store.range({ type: 'range', target: { prefix: this.namespace + prefix } }, CALL)).kvs;
  }

  async key(path: string): Promise<KeyValue | undefined> {
    return (await this.#store.range({ type: 'range', target: { key: this.namespace + path } }, CALL)).kvs[0];
  }

  /** All that is stored here, as `path=value`, but for the sessions' own keys. */
  async dump(): Promise<string[]> {
    const kvs = (await this.keys()).filter(({ key }) => !key.startsWith(`${this.namespace}/_sessions/`));
    return kvs.map(({ key, value }) => `${key.slice(this.namespace.length)}=${Buffer.from(value).toString()}`);
  }

  async revision(): Promise<number> {
    return (await this.#store.range({ type: 'range', target: { key: this.namespace || '/' } }, CALL)).header.revision;
  }
}
