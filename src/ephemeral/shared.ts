import type { Observable } from 'rxjs';
import type { Clock } from '../core/clock.ts';
import { Connection, MoveError } from '../core/connection.ts';
import { ClosedError, type EphemeralError } from '../core/errors.ts';
import { Session } from '../core/session.ts';
import type { Standby } from '../core/standby.ts';
import type { Store } from '../core/store.ts';
import { WatchHub } from '../core/watch-hub.ts';
import { AddedDirectories } from './added-directories.ts';
import type { ConnectionState } from './api.ts';
import { CurrentState } from './current-state.ts';
import { SESSIONS_PREFIX } from './keys.ts';
import type { LiveDirectory } from './live-directory.ts';
import type { ResolvedOptions } from './options.ts';
import type { OwnedKey } from './registration.ts';
import { Telemetry } from './stats.ts';

/** `close` may take 2 s in all. */
const REVOKE_MS = 1_000;
const GIVE_BACK_MS = 500;

/** What all namespaces of one client share: a connection, a session, one watch stream, and what was made through them. */
export class Shared {
  readonly connection: Connection;
  readonly session: Session;
  readonly hub: WatchHub;
  readonly telemetry: Telemetry;
  readonly options: ResolvedOptions;
  /** By their keys in the store. */
  readonly registrations = new Map<string, OwnedKey>();
  readonly directories = new Map<string, LiveDirectory>();
  readonly added: AddedDirectories;
  readonly #state: CurrentState<ConnectionState>;
  #closing: Promise<void> | undefined;

  readonly #standby: Standby | undefined;

  constructor(store: Store, clock: Clock, options: ResolvedOptions, standby?: Standby) {
    this.options = options;
    this.#standby = standby;
    this.telemetry = new Telemetry(options.stats, options.logger);
    const ttlMs = options.ttl * 1_000;
    this.connection = new Connection(store, { clock, ttlMs, staleAfterMs: options.staleAfter * 1_000 });
    this.hub = new WatchHub(this.connection);
    this.added = new AddedDirectories(this.connection, this.hub);
    this.session = new Session(this.connection, {
      ttl: options.ttl,
      fencePrefix: options.namespace + SESSIONS_PREFIX,
      onBeat: (ok) => this.telemetry.count(ok ? 'heartbeat.done' : 'heartbeat.failed'),
      standby,
    });
    this.#state = new CurrentState<ConnectionState>('disconnected');
    this.connection.linkUp.add(() => this.#enter('connected'));
    this.connection.linkDown.add((error) => this.#enter('disconnected', error));
  }

  get state(): ConnectionState {
    return this.#state.value;
  }

  get state$(): Observable<ConnectionState> {
    return this.#state.changes$;
  }

  /** Makes the lease when it is not there yet. */
  startSession(): void {
    this.session.start(() => this.registrations.size > 0);
  }

  assertOpen(): void {
    if (this.#closing) throw new ClosedError('the client was closed: make a new one');
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const registrations = [...this.registrations.values()];
    for (const registration of registrations) registration.abandon();
    // Before the lease, on which the locks hang: a last master takes its mirror away, which only the holder of the lock may do.
    const directories = [...this.directories.values()].map((directory) => directory.close());
    await this.#atMost(GIVE_BACK_MS, Promise.allSettled(directories));
    const isRevoked = await this.session.close(REVOKE_MS);
    if (!isRevoked) this.telemetry.say('warn', 'etcd was not told of the end: what is registered goes with its ttl');
    for (const registration of registrations) registration.end();
    this.hub.close();
    this.connection.close();
    await this.#standby?.close();
    this.#enter('closed');
    this.#state.complete();
  }

  async #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.connection.clock.setTimeout(resolve, ms);
      void work.finally(() => {
        timer.clear();
        resolve();
      });
    });
  }

  #enter(state: ConnectionState, error?: EphemeralError): void {
    if (this.#state.value === state || this.#state.value === 'closed') return;
    if (error instanceof MoveError) this.telemetry.say('info', `going to another member: ${error.message}`);
    else if (state === 'disconnected') this.telemetry.say('warn', `etcd is out of reach: ${error?.message}`);
    else if (state === 'connected') this.telemetry.say('info', `connected to ${this.connection.store.endpoint}`);
    this.#state.next(state);
  }
}
