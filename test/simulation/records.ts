/** What the simulation keeps of the processes, registrations and subscriptions that it made. */
import type { Ephemeral, Heartbeat, Listing, Registration } from '../../src/ephemeral/api.ts';
import type { Shared } from '../../src/ephemeral/shared.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import type { EventLoop } from './event-loop.ts';
import type { ProcessStore } from './stores.ts';

export interface Process {
  readonly name: string;
  readonly loop: EventLoop;
  readonly memory: MemoryStore;
  readonly store: ProcessStore;
  shared: Shared | undefined;
  client: Ephemeral | undefined;
  state: 'connecting' | 'open' | 'closing' | 'closed' | 'crashed' | 'failed';
  /** Leases that the store ever granted to it. */
  readonly leases: Set<string>;
  /** When the store last did something for it. */
  servedMs: number;
  /** The history that the store was in then. */
  servedLineage: number;
  /** Its connection is broken, and nobody has told it. */
  isSilenced: boolean;
  /** Which history each of its epochs is about. */
  readonly lineages: Map<number, number>;
  readonly counts: Map<string, number>;
}

export interface RegistrationRecord {
  readonly id: number;
  readonly process: Process;
  readonly path: string;
  readonly key: string;
  readonly heartbeat: Heartbeat;
  /** The newest version asked for. */
  version: number;
  registration: Registration | undefined;
  phase: 'adding' | 'live' | 'refused' | 'removing' | 'removed';
}

export interface SubscriptionRecord {
  readonly id: number;
  readonly process: Process;
  readonly path: string;
  readonly values: boolean;
  readonly via: 'mirror' | 'direct';
  last: Listing | undefined;
  heard: number;
  state: 'open' | 'left' | 'completed' | 'absent';
  leave: () => void;
}

/** What a registration stores: whose it is, which one, and which version of its value. */
export function registeredValue(registration: Pick<RegistrationRecord, 'id' | 'process'>, version: number): string {
  return `${registration.process.name}#${registration.id} v${version}`;
}

export function parseValue(value: string): { process: string; id: number; version: number } | undefined {
  const match = /^(\w+)#(\d+) v(\d+)$/.exec(value);
  return match ? { process: match[1] as string, id: Number(match[2]), version: Number(match[3]) } : undefined;
}
