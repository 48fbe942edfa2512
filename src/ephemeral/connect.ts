import type { Clock } from '../core/clock.ts';
import { ConnectionError } from '../core/errors.ts';
import type { Standby } from '../core/standby.ts';
import type { Store } from '../core/store.ts';
import type { ResolvedOptions } from './options.ts';
import { Shared } from './shared.ts';

/** Opens a store for a client. On failure nothing is left open. */
export async function openShared(
  store: Store,
  clock: Clock,
  options: ResolvedOptions,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  standby?: Standby,
): Promise<Shared> {
  const shared = new Shared(store, clock, options, standby);
  try {
    signal?.throwIfAborted();
    await shared.connection.open(timeoutMs, signal);
    return shared;
  } catch (error) {
    const { endpoint } = store;
    await shared.close();
    if (error instanceof ConnectionError && error.retryable) {
      throw new ConnectionError(
        `no etcd answered at ${endpoint} within ${timeoutMs / 1_000} s (${error.message}): start it, or correct hosts`,
        { cause: error },
      );
    }
    throw error;
  }
}
