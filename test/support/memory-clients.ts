/** Clients on the model of etcd with a clock that the test moves, and the faults to order. */
import type { KeyValue } from '../../src/core/store.ts';
import type { ClientOptions, Ephemeral } from '../../src/index.ts';
import { ManualClock } from '../../src/memory/manual-clock.ts';
import { MemoryServer, type MemoryServerOptions } from '../../src/memory/memory-server.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import { CountingStore } from './counting-store.ts';
import { connectOver } from './space.ts';

export interface MemoryClient {
  readonly client: Ephemeral;
  /** For the server's faults. */
  readonly store: MemoryStore;
  readonly traffic: CountingStore;
}

export class MemoryScene {
  readonly clock: ManualClock;
  readonly server: MemoryServer;

  constructor(options: Omit<MemoryServerOptions, 'clock'> = {}, seed?: number) {
    this.clock = new ManualClock(seed);
    this.server = new MemoryServer({ clock: this.clock, ...options });
  }

  async connect(options: ClientOptions = {}): Promise<MemoryClient> {
    const store = this.server.client();
    const traffic = new CountingStore(store);
    return { client: await connectOver(traffic, this.clock, { ttl: 2, ...options }), store, traffic };
  }

  advance(seconds: number): Promise<void> {
    return this.clock.advance(seconds);
  }

  /** Everything that follows from what was done, without any time passing. */
  settle(): Promise<void> {
    return this.clock.advance(0);
  }

  put(key: string, value = '', lease?: string): number {
    this.server.model.txn({ compares: [], success: [{ type: 'put', key, value, lease }] });
    return this.server.model.header.revision;
  }

  remove(key: string): number {
    this.server.model.txn({ compares: [], success: [{ type: 'delete', target: { key } }] });
    return this.server.model.header.revision;
  }

  keys(prefix: string): readonly KeyValue[] {
    return this.server.model.range({ type: 'range', target: { prefix } }).kvs;
  }

  key(key: string): KeyValue | undefined {
    return this.server.model.range({ type: 'range', target: { key } }).kvs[0];
  }

  value(key: string): string | undefined {
    const stored = this.key(key);
    return stored && Buffer.from(stored.value).toString();
  }

  /** All that is stored, but for the sessions' own keys. */
  dump(): string[] {
    return this.keys('')
      .filter(({ key }) => !key.includes('/_sessions/'))
      .map(({ key, value }) => `${key}=${Buffer.from(value).toString()}`);
  }

  /** Every event on keys under a prefix from now on, as `+key` and `-key`. */
  record(prefix: string): string[] {
    const told: string[] = [];
    this.server.onCommit(({ events }) => {
      for (const { type, kv } of events) {
        if (kv.key.startsWith(prefix)) told.push(`${type === 'put' ? '+' : '-'}${kv.key}`);
      }
    });
    return told;
  }
}
