/** What passes between the main thread and the one that stands by for it. */
import type { ClockOrigin } from '../core/clock.ts';
import type { Lease } from '../core/store.ts';

export interface StandbySetup {
  readonly ttlMs: number;
  readonly stallLimitMs: number;
  readonly grpcOptions: Readonly<Record<string, string | number>> | undefined;
  readonly probeKey: string | undefined;
  /** Both threads count time from here. */
  readonly origin: ClockOrigin;
  readonly shared: SharedArrayBuffer;
}

/** The cells of the shared memory, as 64-bit integers. */
export const CELL = {
  /** The main thread adds one whenever it moves. */
  moves: 0,
  /** When the main thread sent its newest acknowledged keepalive, whole milliseconds. */
  renewedAtMs: 1,
} as const;

export const CELLS = 2;

/** As resolved for the main thread's own connection: functions among the options can be asked there alone. */
export interface DialOrder {
  readonly do: 'dial';
  readonly hosts: readonly string[];
  readonly credentials: Readonly<Record<string, Uint8Array | undefined>> | undefined;
  readonly auth: { readonly username: string; readonly password: string } | undefined;
}

export type StandbyOrder =
  | DialOrder
  | { readonly do: 'guard'; readonly lease: Lease; readonly renewedAtMs: number }
  | { readonly do: 'release' };

export type StandbyReport =
  | { readonly is: 'ready' }
  | { readonly is: 'renewed'; readonly leaseId: string; readonly sentMs: number }
  | { readonly is: 'gone'; readonly leaseId: string }
  | {
      readonly is: 'verified';
      readonly leaseId: string;
      readonly keys: readonly string[];
      readonly askedAtMs: number;
    };
