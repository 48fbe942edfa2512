import type { KeyValue, RangeOp, WatchEvent, WatchObserver } from '../../src/core/store.ts';
import { ManualClock } from '../../src/memory/manual-clock.ts';
import { MemoryServer, type MemoryServerOptions } from '../../src/memory/memory-server.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';

export const CALL = { timeoutMs: 1_000 };

/** A server on a clock that the test moves. */
export function memoryServer(options: Omit<MemoryServerOptions, 'clock'> = {}, seed?: number) {
  const clock = new ManualClock(seed);
  return { clock, server: new MemoryServer({ clock, ...options }) };
}

/** A client that is connected. */
export async function connected(server: MemoryServer): Promise<MemoryStore> {
  const store = server.client();
  await store.connect(CALL);
  return store;
}

export function put(store: MemoryStore, key: string, value = '', lease?: string) {
  return store.txn({ compares: [], success: [{ type: 'put', key, value, lease }] }, CALL);
}

export function remove(store: MemoryStore, key: string) {
  return store.txn({ compares: [], success: [{ type: 'delete', target: { key } }] }, CALL);
}

export function range(store: MemoryStore, op: Omit<RangeOp, 'type'>) {
  return store.range({ type: 'range', ...op }, CALL);
}

export async function keys(store: MemoryStore, prefix: string): Promise<string[]> {
  return (await range(store, { target: { prefix } })).kvs.map((kv) => kv.key);
}

/** An event as `+key@revision` or `-key@revision`. */
export function told({ type, kv }: { readonly type: WatchEvent['type']; readonly kv: KeyValue }): string {
  return `${type === 'put' ? '+' : '-'}${kv.key}@${kv.modRevision}`;
}

/** Keeps all that a watch stream says, one entry a message. */
export class Recorder implements WatchObserver {
  readonly said: string[] = [];
  readonly errors: Error[] = [];

  onCreated(id: number): void {
    this.said.push(`created ${id}`);
  }

  onEvents(id: number, events: readonly WatchEvent[]): void {
    this.said.push(`${id}: ${events.map(told).join(' ')}`);
  }

  onCanceled(id: number, error: Error): void {
    this.said.push(`canceled ${id} ${error.name}`);
    this.errors.push(error);
  }

  onEnd(error: Error): void {
    this.said.push(`end ${error.name}`);
    this.errors.push(error);
  }
}
