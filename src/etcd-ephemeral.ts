import { systemClock } from './core/clock.ts';
import { InvalidOptionError } from './core/errors.ts';
import type { ClientOptions, Ephemeral } from './ephemeral/api.ts';
import { openShared } from './ephemeral/connect.ts';
import { EphemeralOverStore } from './ephemeral/ephemeral.ts';
import { SESSIONS_PREFIX } from './ephemeral/keys.ts';
import { CLIENT_OPTION_NAMES, checkNames, checkNamespace, checkSignal, resolveOptions } from './ephemeral/options.ts';
import type { Shared } from './ephemeral/shared.ts';
import { EtcdStore } from './etcd/etcd-store.ts';
import type { EtcdStoreOptions } from './etcd/options.ts';
import { WorkerStandby } from './etcd/worker-standby.ts';
import { FollowedHosts } from './follow.ts';

/** How to reach etcd, and how to behave there. `hosts`, `credentials`, `auth` and `grpcOptions` mean what they mean to etcd3. */
export interface ConnectOptions
  extends ClientOptions,
    Omit<EtcdStoreOptions, 'clock' | 'probeKey' | 'hosts' | 'onResolved'> {
  /** `http://host:port` or `https://…`, one or several, or a function that is asked again at each reconnect. Default http://127.0.0.1:2379. */
  hosts?: EtcdStoreOptions['hosts'] | undefined;
  /** Also try the endpoints that an elastic cluster publishes under this namespace (its own, `/_elastic` by default). */
  follow?: string | undefined;
  /** Seconds until the first connection must stand; `Infinity` waits for ever. Default 10. */
  connectTimeout?: number | undefined;
  /**
   * Seconds for which the event loop may stand still without losing what is registered: a worker thread, with a connection of its
   * own, renews the lease meanwhile. A process that stands still for longer hangs, and is gone a ttl later. Must be longer than
   * `ttl`. Default: there is no such thread, and a loop that stands still for longer than the ttl loses the lease.
   */
  stallLimit?: number | undefined;
  /** Ends the attempt to connect. */
  signal?: AbortSignal | undefined;
}

const OPTION_NAMES = [
  'hosts',
  'credentials',
  'auth',
  'grpcOptions',
  'follow',
  'connectTimeout',
  'stallLimit',
  'signal',
  ...CLIENT_OPTION_NAMES,
] as const;

/** Ephemeral nodes on a real etcd. */
export class EtcdEphemeral extends EphemeralOverStore implements Ephemeral {
  private constructor(shared: Shared, namespace: string) {
    super(shared, namespace);
  }

  /**
   * @throws ConnectionError when no etcd answers within `connectTimeout`, or its certificate is not to be trusted
   * @throws UnauthenticatedError for a wrong user or password
   * @throws InvalidOptionError
   */
  static async connect(options: ConnectOptions = {}): Promise<EtcdEphemeral> {
    checkNames('connect', options, OPTION_NAMES);
    const {
      hosts = 'http://127.0.0.1:2379',
      credentials,
      auth,
      grpcOptions,
      follow,
      connectTimeout = 10,
      signal,
    } = options;
    checkSignal('signal', signal);
    if (typeof connectTimeout !== 'number' || !(connectTimeout > 0)) {
      throw new InvalidOptionError(
        `connectTimeout must be a positive number of seconds, got ${String(connectTimeout)}`,
      );
    }
    if (follow !== undefined) checkNamespace(follow);
    const resolved = resolveOptions(options);
    checkStallLimit(options.stallLimit, resolved.ttl);
    signal?.throwIfAborted();
    const clock = systemClock();
    const probeKey = resolved.namespace + SESSIONS_PREFIX;
    const followed = follow === undefined ? undefined : new FollowedHosts(hosts);
    let standby: WorkerStandby | undefined;
    const store = new EtcdStore({
      hosts: followed?.hosts ?? hosts,
      credentials,
      auth,
      grpcOptions,
      clock,
      probeKey,
      onResolved: (it) => standby?.dial(it),
    });
    if (options.stallLimit !== undefined) {
      standby = await WorkerStandby.start({
        ttlMs: resolved.ttl * 1_000,
        stallLimitMs: options.stallLimit * 1_000,
        grpcOptions,
        probeKey,
        onFailure: ({ message }) =>
          resolved.logger?.error(
            `the worker thread for stallLimit has ended, a stalled loop loses its lease: ${message}`,
          ),
      });
    }
    const shared = await openShared(store, clock, resolved, connectTimeout * 1_000, signal, standby);
    if (follow !== undefined) followed?.follow(shared, follow, resolved.logger);
    return new EtcdEphemeral(shared, resolved.namespace);
  }
}

function checkStallLimit(stallLimit: unknown, ttl: number): void {
  if (stallLimit === undefined) return;
  if (typeof stallLimit === 'number' && stallLimit > ttl && Number.isFinite(stallLimit)) return;
  throw new InvalidOptionError(
    `stallLimit must be a number of seconds above ttl (${ttl}), got ${String(stallLimit)}: a loop that stands still for less loses nothing`,
  );
}
