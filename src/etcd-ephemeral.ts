import { systemClock } from './core/clock.ts';
import { InvalidOptionError } from './core/errors.ts';
import type { ClientOptions, Ephemeral } from './ephemeral/api.ts';
import { openShared } from './ephemeral/connect.ts';
import { EphemeralOverStore } from './ephemeral/ephemeral.ts';
import { SESSIONS_PREFIX } from './ephemeral/keys.ts';
import { CLIENT_OPTION_NAMES, checkNames, checkSignal, resolveOptions } from './ephemeral/options.ts';
import type { Shared } from './ephemeral/shared.ts';
import { EtcdStore } from './etcd/etcd-store.ts';
import type { EtcdStoreOptions } from './etcd/options.ts';

/** How to reach etcd, and how to behave there. `hosts`, `credentials`, `auth` and `grpcOptions` mean what they mean to etcd3. */
export interface ConnectOptions extends ClientOptions, Omit<EtcdStoreOptions, 'clock' | 'probeKey' | 'hosts'> {
  /** `http://host:port` or `https://…`, one or several, or a function that is asked again at each reconnect. Default http://127.0.0.1:2379. */
  hosts?: EtcdStoreOptions['hosts'] | undefined;
  /** Seconds until the first connection must stand; `Infinity` waits for ever. Default 10. */
  connectTimeout?: number | undefined;
  /** Ends the attempt to connect. */
  signal?: AbortSignal | undefined;
}

const OPTION_NAMES = [
  'hosts',
  'credentials',
  'auth',
  'grpcOptions',
  'connectTimeout',
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
    const { hosts = 'http://127.0.0.1:2379', credentials, auth, grpcOptions, connectTimeout = 10, signal } = options;
    checkSignal('signal', signal);
    if (typeof connectTimeout !== 'number' || !(connectTimeout > 0)) {
      throw new InvalidOptionError(
        `connectTimeout must be a positive number of seconds, got ${String(connectTimeout)}`,
      );
    }
    const resolved = resolveOptions(options);
    const clock = systemClock();
    const probeKey = resolved.namespace + SESSIONS_PREFIX;
    const store = new EtcdStore({ hosts, credentials, auth, grpcOptions, clock, probeKey });
    const shared = await openShared(store, clock, resolved, connectTimeout * 1_000, signal);
    return new EtcdEphemeral(shared, resolved.namespace);
  }
}
