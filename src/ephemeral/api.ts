/** The public surface, as types. Times are seconds unless a name ends in `Ms`. */
import type { Observable } from 'rxjs';
import type { EphemeralError } from '../core/errors.ts';

/** Whether the store answers. `disconnected` heals by itself; `closed` is final. */
export type ConnectionState = 'connected' | 'disconnected' | 'closed';

/**
 * `registering`: not confirmed yet. `registered`: confirmed on our lease, with our newest value, at most one ttl ago.
 * `lost`: it was given up, see `error`; it comes back by itself. `removed`: for good.
 */
export type RegistrationState = 'registering' | 'registered' | 'lost' | 'removed';

/**
 * How a registration is kept alive. `lease` renews the lease alone, which no watcher hears. `put` also writes the key again every
 * 0.4 × ttl, for consumers that watch for refreshes.
 */
export type Heartbeat = 'lease' | 'put';

/** Ends one call. The promise rejects with the signal's reason. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface AddDirOptions extends CallOptions {
  /** Reject with PathExistsError when the directory was added before. Default true. */
  exclusive?: boolean | undefined;
}

export interface AddKeyOptions extends CallOptions {
  heartbeat?: Heartbeat | undefined;
  /** Wait until the key is registered. With `false`, resolve at once in state `registering` and go on trying. Default true. */
  wait?: boolean | undefined;
  /** Ends the life of the registration: when it is aborted, the key is removed. */
  until?: AbortSignal | undefined;
}

/** A key of ours in the store, for as long as this process lives. */
export interface Registration extends AsyncDisposable {
  readonly path: string;
  /** The newest value given, whether or not the store has it yet. */
  readonly value: string;
  readonly state: RegistrationState;
  /** Replays the current state, completes after `removed`. `lost` comes again when its reason (`error`) turns out to be another one. */
  readonly state$: Observable<RegistrationState>;
  /** Why it is lost: ConnectionError, RevokedError or ConflictError; `undefined` in every other state. */
  readonly error: EphemeralError | undefined;
  /** The newest value wins, also across a reconnect. Resolves when the store has it, or a newer one. */
  update(value: string, options?: CallOptions): Promise<void>;
  /** Idempotent. The key is gone when it resolves, or goes with its lease when the store cannot be reached. */
  remove(): Promise<void>;
}

export interface Entry {
  readonly value: string;
  /** The revision that created the key: another one under the same name is another process. */
  readonly created: number;
}

/** A directory as it was at one revision. */
export interface Listing {
  readonly path: string;
  /** Names one level down, keys and directories, each once, sorted. */
  readonly children: readonly string[];
  /** Those of `children` that were added as directories or have children themselves. */
  readonly directories: readonly string[];
  /** With `values: true`: of each child that is a key, its value. */
  readonly entries?: ReadonlyMap<string, Entry>;
  readonly revision: number;
  /** Rises when the store was restored to an older state, which alone lets revisions fall. */
  readonly epoch: number;
  /** `stale`: it cannot be confirmed now, and `children` are the last known. */
  readonly status: 'live' | 'stale';
  toJSON(): object;
}

export interface ListingWithValues extends Listing {
  readonly entries: ReadonlyMap<string, Entry>;
}

/** Cold: each subscriber starts with a listing of its own. As an AsyncIterable, a slow reader gets the newest listing only. */
export type LiveListing<L extends Listing = Listing> = Observable<L> & AsyncIterable<L>;

export interface ListOptions extends CallOptions {
  watch?: false | undefined;
  values?: boolean | undefined;
}

export interface WatchOptions {
  watch: true;
  values?: boolean | undefined;
  /** `mirror`: through the directory's elected master. `direct`: from the directory's own keys. Default `mirror`. */
  via?: 'mirror' | 'direct' | undefined;
  /** What to do when nothing is there at the start. Default `error`. */
  missing?: 'error' | 'wait' | undefined;
  /** Ends the list with WatchStoppedError. */
  signal?: AbortSignal | undefined;
}

export interface Ephemeral extends AsyncDisposable {
  /**
   * Makes a directory that stays, also when it is empty and this client is gone. While this client lives it makes the directory again
   * when the store was wiped or restored to an older state, unless anybody had removed it.
   */
  addDir(path: string, options?: AddDirOptions): Promise<void>;
  /** Removes an added directory. DirectoryNotEmptyError when something lies below; PathNotFoundError when it was not added. */
  removeDir(path: string, options?: CallOptions): Promise<void>;
  /**
   * Registers a key that lives as long as this process. An earlier owner that is expiring is waited for: up to the larger of
   * 2 × ttl and that owner's ttl + 2 s; then, or at once when the key hangs on no lease, PathExistsError.
   */
  addKey(path: string, value: string, options?: AddKeyOptions): Promise<Registration>;
  /** The live list of a directory. */
  list(path: string, options: WatchOptions & { values: true }): LiveListing<ListingWithValues>;
  list(path: string, options: WatchOptions): LiveListing;
  /** The directory, once. PathNotFoundError when nothing is there; NotADirectoryError when only a key is. */
  list(path: string, options: ListOptions & { values: true }): Promise<ListingWithValues>;
  list(path: string, options?: ListOptions): Promise<Listing>;
  /** The value of a key. PathNotFoundError; IsDirectoryError. */
  get(path: string, options?: CallOptions): Promise<string>;
  /** The same client with `prefix` appended to its namespace; connection, session and streams are shared. */
  withNamespace(prefix: string): Ephemeral;
  readonly state: ConnectionState;
  readonly state$: Observable<ConnectionState>;
  /** Its keys go at once. Idempotent. Takes at most 2 s, also with the store down. */
  close(): Promise<void>;
}

/** The difference between two listings in a row, by name. */
export interface ListingChange<L extends Listing = Listing> {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Children of both whose value or creation differs (needs `values: true`), or which became or ceased to be a directory. */
  readonly changed: readonly string[];
  readonly listing: L;
}

/** Receives a count or a time of every operation. */
export interface Stats {
  bumpSum(name: string, n: number): void;
  bumpTime(name: string): { end(): void };
}

/** Hears what an operator must know. pino's shape. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What both kinds of client, on etcd and in memory, take. */
export interface ClientOptions {
  /** Put before every key. Any text; may be empty and needs no slash. */
  namespace?: string | undefined;
  /** Seconds until a dead process is noticed. A whole number from 1 to 9,000,000,000. Default 10. */
  ttl?: number | undefined;
  /** Default for registrations. Default `lease`. */
  heartbeat?: Heartbeat | undefined;
  /** Whether this client may become master of a mirror. With `false` it writes nothing for its lists. Default true. */
  candidate?: boolean | undefined;
  /**
   * Seconds without contact after which a live list calls itself stale. Default: ttl. A quiet connection without a lease is known to have
   * been alive within the last 8 s only, which count.
   */
  staleAfter?: number | undefined;
  stats?: Stats | undefined;
  logger?: Logger | undefined;
}
