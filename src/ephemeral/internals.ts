import type { Connection } from '../core/connection.ts';
import type { Ephemeral } from './api.ts';

export interface Internals {
  readonly connection: Connection;
  readonly namespace: string;
}

/** What lies beneath a client, for parts of this package that need more than it offers, and for nobody else. */
export const internals = new WeakMap<Ephemeral, Internals>();
