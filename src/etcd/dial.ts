/** From options to a connection that is known to work. */
import type { IRangeResponse, ITxnResponse } from 'etcd3';
import { PermissionDeniedError } from '../core/errors.ts';
import type { Header } from '../core/store.ts';
import type { Endpoint } from './endpoints.ts';
import { toHeader } from './messages.ts';
import { type EtcdStoreOptions, resolveOptions } from './options.ts';
import { Transport } from './transport.ts';

/** Lies under no namespace that begins with a printable character, and is hardly ever there. */
const DEFAULT_PROBE_KEY = '\0';

export interface Dialed {
  readonly transport: Transport;
  readonly header: Header;
}

/**
 * A linearizable read: it succeeds only where a quorum stands behind the member. When the user may not read the key, the refusal
 * came after that; an empty transaction, which needs no permission, then gives what the member has applied by now.
 */
async function prove(transport: Transport, probeKey: string, timeoutMs: number): Promise<Header> {
  const endMs = Date.now() + timeoutMs;
  try {
    const read = { key: Buffer.from(probeKey), count_only: true };
    const response = await transport.call<IRangeResponse>('KV', 'range', read, timeoutMs);
    return toHeader(response.header);
  } catch (error) {
    if (!(error instanceof PermissionDeniedError)) throw error;
  }
  const response = await transport.call<ITxnResponse>('KV', 'txn', {}, endMs - Date.now());
  return toHeader(response.header);
}

async function establish(
  options: EtcdStoreOptions,
  choose: (endpoints: readonly Endpoint[]) => Endpoint,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Dialed> {
  const resolved = await resolveOptions(options);
  signal.throwIfAborted();
  options.onResolved?.(resolved);
  const { endpoints, credentials, auth } = resolved;
  const { grpcOptions, probeKey = DEFAULT_PROBE_KEY } = options;
  const transport = await Transport.open({ endpoint: choose(endpoints), credentials, auth, grpcOptions });
  signal.addEventListener('abort', () => transport.close(), { once: true });
  try {
    signal.throwIfAborted();
    const header = await transport.connecting(async () => {
      await transport.authenticate(timeoutMs);
      return prove(transport, probeKey, timeoutMs);
    });
    return { transport, header };
  } catch (error) {
    transport.close();
    throw error;
  }
}

/** Rejects as soon as `signal` is aborted, with its reason; nothing of the attempt is left then. */
export function dial(
  options: EtcdStoreOptions,
  choose: (endpoints: readonly Endpoint[]) => Endpoint,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Dialed> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    establish(options, choose, timeoutMs, signal).then(resolve, reject);
  });
}
