import { EphemeralError, NotADirectoryError, PathNotFoundError } from '../../src/core/errors.ts';
import type { Listing } from '../../src/ephemeral/api.ts';
import { dirKey } from '../../src/ephemeral/keys.ts';
import type { Act } from './program.ts';
import { type Process, type RegistrationRecord, registeredValue, type SubscriptionRecord } from './records.ts';
import type { World } from './world.ts';

/** What `close` may take, however bad things are. */
const CLOSE_MS = 2_000;
/** Within so much it was done in earnest, not given up. */
const QUICK_CLOSE_MS = 400;
/** So long after its client was closed a process has nothing left. */
const SETTLED_MS = 100;

/** What users do with their clients, and what they are promised of each call. */
export class Users {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  do(id: number, process: Process, act: Act): void {
    const { client } = process;
    if (!client || process.state !== 'open') return;
    switch (act.kind) {
      case 'addKey':
        this.#addKey(id, process, act);
        return;
      case 'update':
        this.#update(act.of);
        return;
      case 'remove':
        this.#remove(act.of);
        return;
      case 'addDir':
        client.addDir(act.path).then(
          () => this.#world.oracle.directories.added(this.#dirKey(act.path), process),
          (error: unknown) => this.expected('addDir', error),
        );
        return;
      case 'removeDir':
        this.#world.oracle.directories.removing(this.#dirKey(act.path), process);
        client.removeDir(act.path).catch((error: unknown) => this.expected('removeDir', error));
        return;
      case 'list':
        client.list(act.path).then(
          (listing) => this.#world.oracle.listed(process, act.path, listing, `${process.name}'s list of ${act.path}`),
          (error: unknown) => this.expected('list', error),
        );
        return;
      case 'watch':
        this.#watch(id, process, act);
        return;
      case 'unwatch':
        this.#unwatch(act.of);
        return;
      case 'close':
        void this.close(process);
        return;
      default:
        return;
    }
  }

  #addKey(id: number, process: Process, act: Extract<Act, { kind: 'addKey' }>): void {
    const { path, heartbeat, wait } = act;
    const record: RegistrationRecord = {
      id,
      process,
      path,
      key: this.#world.namespace + path,
      heartbeat,
      version: 1,
      registration: undefined,
      phase: 'adding',
    };
    this.#world.registrations.set(id, record);
    process.client?.addKey(path, registeredValue(record, 1), { heartbeat, wait }).then(
      (registration) => {
        record.registration = registration;
        record.phase = 'live';
        registration.state$.subscribe((state) =>
          this.#world.trace(() => `${process.name} ${path}: ${state} ${registration.error?.message ?? ''}`),
        );
      },
      (error: unknown) => {
        record.phase = 'refused';
        this.expected(`addKey ${path}`, error);
      },
    );
  }

  #update(of: number): void {
    const record = this.#world.registrations.get(of);
    if (!record?.registration || record.phase !== 'live') return;
    record.version += 1;
    record.registration
      .update(registeredValue(record, record.version))
      .catch((error: unknown) => this.expected('update', error));
  }

  #remove(of: number): void {
    const record = this.#world.registrations.get(of);
    if (!record?.registration || record.phase !== 'live') return;
    const { connection } = record.process.shared as NonNullable<Process['shared']>;
    const { link } = connection;
    record.phase = 'removing';
    record.registration.remove().then(
      () => {
        if (record.process.state !== 'open' || !link || connection.link?.generation !== link.generation) return;
        record.phase = 'removed';
        const kv = this.#world.oracle.keys.get(record.key);
        const stored = kv ? Buffer.from(kv.value).toString() : '';
        if (stored.startsWith(`${record.process.name}#${of} `)) {
          this.#world.oracle.fail('API', `remove of ${record.key} resolved, and the store has ${stored}`);
        }
      },
      (error: unknown) => this.expected('remove', error),
    );
  }

  #watch(id: number, process: Process, act: Extract<Act, { kind: 'watch' }>): void {
    const { path, values, via, missing } = act;
    const subscription: SubscriptionRecord = {
      id,
      process,
      path,
      values,
      via,
      last: undefined,
      heard: 0,
      state: 'open',
      leave: () => {},
    };
    this.#world.subscriptions.set(id, subscription);
    const options = { watch: true, via, missing } as const;
    const list = values
      ? process.client?.list(path || '/', { ...options, values })
      : process.client?.list(path || '/', options);
    const subscribed = list?.subscribe({
      next: (listing: Listing) => {
        this.#world.trace(
          () =>
            `${process.name} subscription ${id} to ${path || '/'}: [${listing.children}] at ${listing.revision}` +
            ` epoch ${listing.epoch} ${listing.status}`,
        );
        this.#world.oracle.heard(subscription, listing);
        subscription.last = listing;
        subscription.heard += 1;
      },
      error: (error: unknown) => {
        subscription.state = 'absent';
        const isAbsent = error instanceof PathNotFoundError || error instanceof NotADirectoryError;
        if (isAbsent && missing === 'error' && subscription.heard === 0) return;
        this.#world.oracle.fail(
          'API',
          `subscription ${id} of ${process.name} to ${path || '/'} ended: ${String(error)}`,
        );
      },
      complete: () => {
        if (process.state === 'open')
          this.#world.oracle.fail('API', `subscription ${id} of ${process.name} completed by itself`);
        if (subscription.state === 'open') subscription.state = 'completed';
      },
    });
    subscription.leave = () => subscribed?.unsubscribe();
  }

  #unwatch(of: number): void {
    const subscription = this.#world.subscriptions.get(of);
    if (subscription?.state !== 'open') return;
    subscription.state = 'left';
    subscription.leave();
  }

  /** A user closes the client; what is promised of that is checked when it is done, and a little later. */
  async close(process: Process): Promise<void> {
    const { client, shared, loop } = process;
    if (!client || !shared || process.state !== 'open') return;
    const { connection, session } = shared;
    const { link } = connection;
    const lease = session.leaseId;
    const startMs = this.#world.nowMs();
    process.state = 'closing';
    // What is awaited of the store is known to have been answered only where the link has not been lost since.
    let hasFailed = link === undefined;
    const off = connection.linkDown.add(() => {
      hasFailed = true;
    });
    await client.close();
    off();
    process.state = 'closed';
    this.#world.trace(() => `${process.name} is closed`);
    const tookMs = this.#world.nowMs() - startMs;
    if (tookMs > CLOSE_MS && loop.isRunning && loop.heldMs < startMs)
      this.#world.oracle.fail('API', `${process.name} took ${tookMs} ms to close`);
    if (!hasFailed && tookMs < QUICK_CLOSE_MS && lease !== undefined) {
      const left = [...this.#world.oracle.keys.values()].filter((kv) => kv.lease === lease).map((kv) => kv.key);
      if (left.length > 0) this.#world.oracle.fail('R2', `${process.name} is closed, and ${left} is still there`);
    }
    this.#world.clock.setTimeout(() => {
      const { streams } = process.store;
      if (!loop.isRunning || loop.timers + streams + shared.hub.size === 0) return;
      this.#world.oracle.fail(
        'S3',
        `${process.name} is closed and has ${loop.timers} timers, ${streams} streams, ${shared.hub.size} watches`,
      );
    }, SETTLED_MS);
  }

  #dirKey(path: string): string {
    return dirKey(this.#world.namespace, path);
  }

  /** A user's call failed: with an error of ours, or the library is to blame. */
  expected(call: string, error: unknown): void {
    this.#world.trace(() => `${call}: ${String(error)}`);
    if (!(error instanceof EphemeralError)) this.#world.oracle.fail('API', `${call} failed with ${String(error)}`);
  }
}
