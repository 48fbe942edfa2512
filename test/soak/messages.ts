/** What passes between the soak and its client processes: one JSON object a line, on stdin and stdout. */
import type { ProcessPlan } from './plan.ts';

export interface ClientOrders extends ProcessPlan {
  /** Rises when the process was killed and is started anew. */
  readonly incarnation: number;
  readonly hosts: readonly string[];
  readonly seed: number;
}

/** `busy`: come, go and change by chance. `quiet`: be all there, and leave it so. `block`: stand still for `ms`. */
export type Order =
  | { readonly do: 'busy' | 'quiet' | 'sample' | 'close' }
  | { readonly do: 'block'; readonly ms: number }
  | { readonly do: 'explain'; readonly client: number };

export interface Sample {
  readonly rssMb: number;
  /** After a garbage collection. */
  readonly heapMb: number;
  readonly files: number;
  readonly sockets: number;
  readonly handles: number;
}

export type Report =
  /** Client number `client` has its first connection. */
  | { readonly is: 'connected'; readonly client: number; readonly atMs: number }
  /** All clients have connected, their services are registered and their lists told. */
  | { readonly is: 'ready' }
  /** A service asked for this value, or for nothing any more. */
  | { readonly is: 'asked'; readonly client: number; readonly value: string | undefined; readonly atMs: number }
  | {
      readonly is: 'listing';
      readonly client: number;
      /** Rises with each subscription of this client. */
      readonly subscription: number;
      readonly revision: number;
      readonly epoch: number;
      readonly status: 'live' | 'stale';
      readonly told: string;
      readonly atMs: number;
    }
  | { readonly is: 'unsubscribed'; readonly client: number; readonly subscription: number; readonly atMs: number }
  | ({ readonly is: 'sample' } & Sample)
  /** Nothing is left to do of what `quiet` asks. */
  | { readonly is: 'quiet' }
  | { readonly is: 'explained' | 'broken'; readonly what: string };
