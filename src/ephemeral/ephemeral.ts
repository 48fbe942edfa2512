import type { Observable } from 'rxjs';
import { abortable } from '../core/abortable.ts';
import {
  concerning,
  DirectoryNotEmptyError,
  EphemeralError,
  IsDirectoryError,
  PathExistsError,
  PathNotFoundError,
  WatchStoppedError,
} from '../core/errors.ts';
import { onAbort } from '../core/on-abort.ts';
import { parsePath } from '../core/paths.ts';
import { firstKey } from '../core/store.ts';
import type {
  AddDirOptions,
  AddKeyOptions,
  CallOptions,
  ConnectionState,
  Ephemeral,
  Listing,
  ListingWithValues,
  ListOptions,
  LiveListing,
  Registration,
  WatchOptions,
} from './api.ts';
import { DirectReader } from './direct-reader.ts';
import { internals } from './internals.ts';
import { directoryKeys, dirKey, mirrorKeys } from './keys.ts';
import { makeListing } from './listing.ts';
import { LiveDirectory } from './live-directory.ts';
import { LiveListingObservable } from './live-listing.ts';
import { MirroredReader } from './mirror/mirrored-reader.ts';
import {
  checkBoolean,
  checkHeartbeat,
  checkNames,
  checkNamespace,
  checkOneOf,
  checkSignal,
  checkValue,
} from './options.ts';
import { assertDirectory, readDirectory } from './read-directory.ts';
import type { ReaderContext } from './reader.ts';
import { OwnedKey } from './registration.ts';
import type { Shared } from './shared.ts';

/** A single call goes on trying to reach the store for so long (ms). */
const CALL_BUDGET_MS = 10_000;

/** The one implementation, over whichever store its connection is to. */
export class EphemeralOverStore implements Ephemeral {
  readonly #shared: Shared;
  readonly #namespace: string;

  constructor(shared: Shared, namespace: string) {
    this.#shared = shared;
    this.#namespace = namespace;
    internals.set(this, { connection: shared.connection, namespace });
  }

  get state(): ConnectionState {
    return this.#shared.state;
  }

  get state$(): Observable<ConnectionState> {
    return this.#shared.state$;
  }

  withNamespace(prefix: string): Ephemeral {
    checkNamespace(prefix);
    return new EphemeralOverStore(this.#shared, this.#namespace + prefix);
  }

  async addDir(path: string, options: AddDirOptions = {}): Promise<void> {
    checkNames('addDir', options, ['exclusive', 'signal']);
    checkBoolean('exclusive', options.exclusive);
    const parsed = parsePath(path);
    const key = dirKey(this.#namespace, parsed);
    const nonce = this.#nonce();
    await this.#call('addDir', parsed, options, async (retry) => {
      const answer = await this.#shared.connection.txn(
        {
          compares: [{ target: { key }, field: 'create', op: '=', operand: 0 }],
          success: [{ type: 'put', key, value: nonce }],
          failure: [{ type: 'range', target: { key } }],
        },
        retry,
      );
      // Ours, when an earlier try of this call was done and its answer lost.
      const stored = answer.succeeded ? undefined : firstKey(answer.results[0]);
      const isOurs = answer.succeeded || (stored && Buffer.from(stored.value).toString() === nonce);
      if (isOurs || options.exclusive === false) {
        this.#shared.added.remember(key, nonce, answer.header.revision, answer.epoch);
        return;
      }
      throw new PathExistsError(`directory ${parsed} was added before: pass exclusive: false where that is fine`);
    });
  }

  async removeDir(path: string, options: CallOptions = {}): Promise<void> {
    checkNames('removeDir', options, ['signal']);
    const parsed = parsePath(path);
    const keys = directoryKeys(this.#namespace, parsed);
    await this.#call('removeDir', parsed, options, async (retry) => {
      let attempts = 0;
      const answer = await this.#shared.connection.retrying((store) => {
        attempts += 1;
        return store.txn(
          {
            compares: [
              { target: { key: keys.added }, field: 'create', op: '>', operand: 0 },
              { target: { prefix: keys.children }, field: 'create', op: '=', operand: 0 },
              { target: { prefix: keys.addedBelow }, field: 'create', op: '=', operand: 0 },
            ],
            success: [{ type: 'delete', target: { key: keys.added } }],
            failure: [{ type: 'range', target: { key: keys.added }, countOnly: true }],
          },
          this.#shared.connection.callOptions,
        );
      }, retry);
      const [added] = answer.results;
      const isThere = !answer.succeeded && added?.type === 'range' && added.count > 0;
      // Also where it was lost with the store, and would be made again.
      if (!isThere) this.#shared.added.forget(keys.added);
      if (answer.succeeded) return;
      if (isThere) throw new DirectoryNotEmptyError(`directory ${parsed} has children: remove them first`);
      // Gone by an earlier try of this very call, whose answer was lost.
      if (attempts === 1) throw new PathNotFoundError(`directory ${parsed} was not added with addDir`);
    });
  }

  async addKey(path: string, value: string, options: AddKeyOptions = {}): Promise<Registration> {
    checkNames('addKey', options, ['heartbeat', 'wait', 'until', 'signal']);
    checkHeartbeat(options.heartbeat);
    checkBoolean('wait', options.wait);
    checkSignal('until', options.until);
    checkValue(String(path), value);
    const parsed = parsePath(path);
    return this.#call('addKey', parsed, options, async () => {
      options.until?.throwIfAborted();
      const registration = this.#register(parsed, value, options);
      if (options.wait === false) return registration;
      try {
        await abortable(registration.whenRegistered(), options.signal);
        return registration;
      } catch (error) {
        void registration.remove();
        throw error;
      }
    });
  }

  list(path: string, options: WatchOptions & { values: true }): LiveListing<ListingWithValues>;
  list(path: string, options: WatchOptions): LiveListing;
  list(path: string, options: ListOptions & { values: true }): Promise<ListingWithValues>;
  list(path: string, options?: ListOptions): Promise<Listing>;
  list(path: string, options: ListOptions | WatchOptions = {}): Promise<Listing> | LiveListing {
    return options?.watch === true ? this.#watch(path, options) : this.#listOnce(path, options as ListOptions);
  }

  async get(path: string, options: CallOptions = {}): Promise<string> {
    checkNames('get', options, ['signal']);
    const parsed = parsePath(path);
    const keys = directoryKeys(this.#namespace, parsed);
    return this.#call('get', parsed, options, async (retry) => {
      const answer = await this.#shared.connection.txn(
        {
          compares: [],
          success: [
            { type: 'range', target: { key: this.#namespace + parsed } },
            { type: 'range', target: { prefix: keys.children }, keysOnly: true, limit: 1 },
            { type: 'range', target: { prefix: keys.addedBelow }, keysOnly: true, limit: 1 },
            { type: 'range', target: { key: keys.added }, keysOnly: true },
          ],
        },
        retry,
      );
      const [own, ...others] = answer.results.map((result) => (result.type === 'range' ? result.kvs[0] : undefined));
      if (own) return Buffer.from(own.value).toString();
      if (others.some((kv) => kv)) throw new IsDirectoryError(`${parsed} is a directory: read it with list`);
      throw new PathNotFoundError(`there is no key ${parsed}`);
    });
  }

  close(): Promise<void> {
    return this.#shared.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Times, counts and bounds one call; a rejection of the signal's is passed as it is. */
  async #call<T>(
    name: string,
    path: string,
    options: CallOptions,
    run: (retry: { signal: AbortSignal | undefined; budgetMs: number }) => Promise<T>,
  ): Promise<T> {
    checkSignal('signal', options.signal);
    this.#shared.assertOpen();
    options.signal?.throwIfAborted();
    try {
      return await this.#shared.telemetry.operation(name, () =>
        run({ signal: options.signal, budgetMs: CALL_BUDGET_MS }),
      );
    } catch (error) {
      throw error instanceof EphemeralError ? concerning(path, error) : error;
    }
  }

  async #listOnce(path: string, options: ListOptions): Promise<Listing> {
    checkNames('list', options, ['watch', 'values', 'signal']);
    checkBoolean('values', options.values);
    checkBoolean('watch', options.watch);
    const parsed = parsePath(path, 'root allowed');
    const values = options.values === true;
    const keys = directoryKeys(this.#namespace, parsed);
    return this.#call('list', parsed || '/', options, async (retry) => {
      const read = await readDirectory(this.#shared.connection, keys, undefined, values, retry);
      assertDirectory(parsed, read);
      const { revision, epoch, directory } = read;
      return makeListing(
        { path: parsed || '/', at: directory.children.now(), revision, epoch, status: 'live' },
        values,
      );
    });
  }

  #watch(path: string, options: WatchOptions): LiveListing {
    checkNames('list', options, ['watch', 'values', 'via', 'missing', 'signal']);
    checkBoolean('values', options.values);
    checkOneOf('via', options.via, ['mirror', 'direct']);
    checkOneOf('missing', options.missing, ['error', 'wait']);
    checkSignal('signal', options.signal);
    const parsed = parsePath(path, 'root allowed');
    const { signal, missing = 'error', via = 'mirror', values = false } = options;
    return new LiveListingObservable((subscriber) => {
      if (this.#shared.isClosed) {
        try {
          this.#shared.assertOpen();
        } catch (error) {
          subscriber.error(error);
        }
        return () => {};
      }
      const stop = () =>
        subscriber.error(
          new WatchStoppedError(`the list of ${path} was stopped by its signal`, { cause: signal?.reason }),
        );
      if (signal?.aborted) {
        stop();
        return () => {};
      }
      const off = signal && onAbort(signal, stop);
      const leave = this.#directory(parsed, values, via).subscribe({
        missing,
        next: (listing) => subscriber.next(listing),
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
      return () => {
        off?.();
        leave();
      };
    });
  }

  /** The directory as it is followed already, or from now on. */
  #directory(path: string, withValues: boolean, via: 'mirror' | 'direct'): LiveDirectory {
    const { connection, hub, telemetry, directories, session, options } = this.#shared;
    const keys = directoryKeys(this.#namespace, path);
    const id = `${via} ${withValues ? 'values' : 'names'} ${keys.children}`;
    const present = directories.get(id);
    if (present) return present;
    const context: ReaderContext = { connection, hub, telemetry, path, directory: keys, withValues };
    const mirror = mirrorKeys(this.#namespace, path, withValues ? 'values' : 'names');
    if (via === 'mirror' && options.candidate) this.#shared.startSession();
    const made = new LiveDirectory(
      context,
      (events) =>
        via === 'direct'
          ? new DirectReader(context, events)
          : new MirroredReader({ ...context, mirror, session: options.candidate ? session : undefined }, events),
      () => {
        if (directories.get(id) === made) directories.delete(id);
        void made.close();
      },
    );
    directories.set(id, made);
    return made;
  }

  #register(path: string, value: string, options: AddKeyOptions): OwnedKey {
    const { registrations, session, hub, telemetry } = this.#shared;
    const key = this.#namespace + path;
    const present = registrations.get(key);
    if (present && !present.isRemoving) {
      throw new PathExistsError(`${path} is registered by this client already: update that registration, or remove it`);
    }
    this.#shared.startSession();
    const { until } = options;
    const registration = new OwnedKey(
      {
        session,
        hub,
        telemetry,
        onGone: (gone) => {
          offUntil?.();
          if (registrations.get(key) === gone) registrations.delete(key);
        },
      },
      {
        path,
        key,
        value,
        heartbeat: options.heartbeat ?? this.#shared.options.heartbeat,
        isAwaited: options.wait !== false,
        after: present,
      },
    );
    registrations.set(key, registration);
    const offUntil = until && onAbort(until, () => void registration.remove());
    return registration;
  }

  /** Told apart from any other client's: what a directory's key holds says who made it. */
  #nonce(): string {
    const { clock } = this.#shared.connection;
    return Array.from({ length: 4 }, () => Math.floor(clock.random() * 2 ** 32).toString(36)).join('');
  }
}
