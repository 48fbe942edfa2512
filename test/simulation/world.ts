import { EphemeralError, NotADirectoryError, PathNotFoundError } from '../../src/core/errors.ts';
import type { CallOptions, Store, Txn, TxnResult } from '../../src/core/store.ts';
import type { Listing } from '../../src/ephemeral/api.ts';
import { openShared } from '../../src/ephemeral/connect.ts';
import { EphemeralOverStore } from '../../src/ephemeral/ephemeral.ts';
import { resolveOptions } from '../../src/ephemeral/options.ts';
import { MemoryServer } from '../../src/memory/memory-server.ts';
import { type MemoryService, MemoryStore } from '../../src/memory/memory-store.ts';
import { MemoryKeepAliveStream } from '../../src/memory/memory-streams.ts';
import type { Snapshot } from '../../src/memory/model.ts';
import { Chance } from './chance.ts';
import { EventLoop } from './event-loop.ts';
import { Oracle, type OracleWorld } from './oracle.ts';
import type { Act, Action, Program } from './program.ts';
import { type Process, type RegistrationRecord, registeredValue, type SubscriptionRecord } from './records.ts';
import { SimulatedClock } from './simulated-clock.ts';
import { storeKey } from './store-keys.ts';
import { PassingStore, ProcessStore } from './stores.ts';

/** Takes a safeguard away from what a process does to its store. */
export type Mutation = (store: Store, world: World, process: () => Process) => Store;

const CONNECT_TIMEOUT_MS = 10_000;
/** What a slow network adds to each message, at most. */
const SLOW_MS = 400;
/** A silent peer is noticed by HTTP/2's own pings after so long, which the model has not. */
const PING_MS = 8_000;
/** What `close` may take, however bad things are. */
const CLOSE_MS = 2_000;
/** Within so much it was done in earnest, not given up. */
const QUICK_CLOSE_MS = 400;
/** So long after its client was closed a process has nothing left. */
const SETTLED_MS = 100;

/** One transaction is under way for each mirror that a process is master of (M2). */
class MirrorWrites extends PassingStore {
  readonly #world: World;
  readonly #underWay = new Set<string>();

  constructor(inner: Store, world: World) {
    super(inner);
    this.#world = world;
  }

  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const written = txn.success.map((op) => (op.type === 'put' ? storeKey(this.#world.namespace, op.key) : undefined));
    const at = written.find((key) => key?.kind === 'marker' || key?.kind === 'shadow');
    if (!at || !('mirror' in at)) return this.inner.txn(txn, options);
    const lock = txn.compares.map(({ operand }) => operand)[0];
    const id = `${at.mirror} ${lock}`;
    if (this.#underWay.has(id)) this.#world.oracle.fail('M2', `two transactions at once to the mirror ${at.mirror}`);
    this.#underWay.add(id);
    return this.inner.txn(txn, options).finally(() => this.#underWay.delete(id));
  }
}

export class World implements OracleWorld {
  readonly program: Program;
  readonly namespace: string;
  readonly ttlMs: number;
  readonly isBrief: boolean;
  readonly clock: SimulatedClock;
  readonly server: MemoryServer;
  readonly oracle: Oracle;
  readonly processes = new Map<number, Process>();
  readonly registrations = new Map<number, RegistrationRecord>();
  readonly subscriptions = new Map<number, SubscriptionRecord>();
  readonly lines: string[] | undefined;
  readonly #mutation: Mutation | undefined;
  readonly #network = new Map<string, Chance>();
  /** Whose call the store is serving. */
  #acting: Process | undefined;
  #slowUntilMs = 0;
  #baseDelayMs: number;
  #isHealed = false;
  #snapshots: { readonly snapshot: Snapshot; readonly lineage: number; readonly revision: number }[] = [];
  #foreign = 0;

  constructor(
    program: Program,
    options: { readonly mutation?: Mutation | undefined; readonly lines?: string[] | undefined },
  ) {
    this.program = program;
    this.namespace = program.namespace;
    this.ttlMs = program.ttl * 1_000;
    this.isBrief = program.isBrief;
    this.lines = options.lines;
    this.#mutation = options.mutation;
    this.#baseDelayMs = program.delayMs;
    this.clock = new SimulatedClock(new Chance(program.seed));
    this.server = new MemoryServer({ clock: this.clock, delayMs: (_kind, client) => this.#delayMs(client) });
    this.oracle = new Oracle(this);
    this.server.onCommit((commit) => this.oracle.committed(commit, this.#acting));
    const { model } = this.server;
    this.#age();
    const expire = model.expire.bind(model);
    model.expire = (nowMs) => this.#asNobody(() => expire(nowMs));
  }

  nowMs(): number {
    return this.clock.now();
  }

  trace(text: () => string): void {
    this.lines?.push(`${String(Math.round(this.nowMs())).padStart(6)} ms  ${text()}`);
  }

  /** Runs until then; throws the first violation. */
  async runUntil(untilMs: number): Promise<void> {
    await this.clock.runUntil(untilMs, () => {
      this.oracle.checkStates();
      if (this.oracle.violation) throw this.oracle.violation;
    });
    if (this.oracle.violation) throw this.oracle.violation;
  }

  /** All processes end without a word: nothing of this world goes on. */
  destroy(): void {
    for (const { loop } of this.processes.values()) loop.kill();
    this.server.close();
  }

  /** All that fate did is undone. Slowness ends as well. */
  heal(): void {
    this.trace(() => 'all is well again');
    this.#isHealed = true;
    this.#slowUntilMs = 0;
    this.#baseDelayMs = Math.min(5, this.#baseDelayMs);
    this.server.noSpace = false;
    this.server.start();
    for (const process of this.processes.values()) {
      if (process.state === 'crashed') continue;
      this.server.heal(process.memory);
      this.server.thaw(process.memory);
      process.memory.transport.lostReplies = 0;
      process.memory.transport.lostRequests = 0;
      process.store.setDeaf(false);
      process.loop.release();
      this.#ping(process);
    }
  }

  /** HTTP/2's own pings end a connection that has gone silent; one that is only being made is for the library to give up. */
  #ping(process: Process): void {
    if (process.isSilenced && process.shared?.connection.link) this.server.cut(process.memory);
    process.isSilenced = false;
  }

  do({ id, act }: Action): void {
    this.trace(() => `#${id} ${JSON.stringify(act)}`);
    switch (act.kind) {
      case 'start':
        this.#start(act.process, act.candidate);
        return;
      case 'restart':
      case 'elect':
      case 'compact':
      case 'snapshot':
      case 'restore':
      case 'wipe':
      case 'fill':
      case 'slow':
        this.#toServer(act);
        return;
      case 'put':
      case 'delete':
      case 'deleteFirst':
        this.#asNobody(() => this.#operate(act));
        return;
      default: {
        const process = this.processes.get(act.process);
        if (!process || process.state === 'crashed' || process.state === 'failed') return;
        if (this.#toProcess(process, act)) return;
        process.loop.pass(() => this.#asUser(id, process, act));
      }
    }
  }

  /** A restore lowers the term: by so much that no number of restarts makes up for it before everyone has looked. */
  #age(): void {
    for (let term = 0; term < 100; term += 1) this.server.model.elect(this.nowMs());
  }

  #delayMs(client: string): number {
    const chance = this.#network.get(client);
    const maxMs = this.nowMs() < this.#slowUntilMs ? SLOW_MS : this.#baseDelayMs;
    return chance && maxMs > 0 ? Math.floor(chance.next() * maxMs) : 0;
  }

  #asNobody<T>(run: () => T): T {
    this.#acting = undefined;
    return run();
  }

  #start(index: number, candidate: boolean): void {
    const name = `p${index}`;
    const chance = new Chance(this.program.seed * 31 + index);
    this.#network.set(name, new Chance(this.program.seed * 37 + index));
    const loop = new EventLoop(this.clock, chance);
    const memory = this.#connect(name, () => process);
    const mutated = this.#mutation ? this.#mutation(memory, this, () => process) : memory;
    const store = new ProcessStore(new MirrorWrites(mutated, this), loop, () => {
      this.oracle.fail('S2', `${name} calls the store in a loop that waits for nothing`);
    });
    const counts = new Map<string, number>();
    const process: Process = {
      name,
      loop,
      memory,
      store,
      shared: undefined,
      client: undefined,
      state: 'connecting',
      leases: new Set(),
      servedMs: Number.NEGATIVE_INFINITY,
      servedLineage: 0,
      lineages: new Map(),
      counts,
      isSilenced: false,
    };
    this.processes.set(index, process);
    const stats = {
      bumpSum: (what: string, n: number) => void counts.set(what, (counts.get(what) ?? 0) + n),
      bumpTime: () => ({ end: () => {} }),
    };
    const options = resolveOptions({ namespace: this.namespace, ttl: this.program.ttl, candidate, stats });
    openShared(store, loop, options, CONNECT_TIMEOUT_MS, undefined).then(
      (shared) => {
        process.shared = shared;
        process.client = new EphemeralOverStore(shared, this.namespace);
        process.state = 'open';
        const link = shared.connection.link;
        if (link) this.oracle.linked(process, link.epoch);
        shared.connection.linkUp.add((next) => this.oracle.linked(process, next.epoch));
      },
      (error: unknown) => {
        process.state = 'failed';
        this.#expected('connect', error);
      },
    );
  }

  /** A client of the store whose every call is known to be this process's. */
  #connect(name: string, process: () => Process): MemoryStore {
    const { server, oracle } = this;
    const { transport } = server.client(name);
    const serve = () => {
      const acting = process();
      this.#acting = acting;
      acting.servedMs = this.nowMs();
      acting.servedLineage = oracle.history.lineage;
      return acting;
    };
    const service: MemoryService = {
      get model() {
        serve();
        return server.model;
      },
      nowMs: () => server.nowMs(),
      grant: (ttl) => {
        const acting = serve();
        const lease = server.grant(ttl);
        acting.leases.add(lease.id);
        oracle.owners.set(lease.id, acting);
        return lease;
      },
      openWatch: (of, observer) => server.openWatch(of, observer),
      openKeepAlive: (of, observer) =>
        new MemoryKeepAliveStream(of, observer, (id) => {
          serve();
          return server.model.keepAlive(id, server.nowMs());
        }),
    };
    return new MemoryStore(transport, service);
  }

  /** Until `heal`. */
  #after(ms: number, then: () => void): void {
    this.clock.setTimeout(() => {
      if (!this.#isHealed) then();
    }, ms);
  }

  #toServer(
    act: Extract<Act, { kind: 'restart' | 'elect' | 'compact' | 'snapshot' | 'restore' | 'wipe' | 'fill' | 'slow' }>,
  ): void {
    const { server, oracle } = this;
    const { revision } = server.model.header;
    switch (act.kind) {
      case 'restart':
        server.stop();
        if (act.ms === 0) server.start();
        else this.#after(act.ms, () => server.start());
        return;
      case 'elect':
        server.model.elect(server.nowMs());
        return;
      case 'compact':
        if (revision > server.model.compactRevision) server.compact();
        return;
      case 'fill':
        server.noSpace = true;
        this.#after(act.ms, () => {
          server.noSpace = false;
        });
        return;
      case 'slow':
        this.#slowUntilMs = this.nowMs() + act.ms;
        return;
      case 'snapshot':
        this.#snapshots.push({ snapshot: server.snapshot(), lineage: oracle.history.lineage, revision });
        return;
      case 'restore': {
        const last = this.#snapshots.at(-1);
        if (!last) return;
        oracle.restored((history) => history.branch(last.lineage, last.revision));
        server.restore(last.snapshot);
        return;
      }
      case 'wipe':
        oracle.restored((history) => history.wipe());
        server.wipe();
        this.#age();
        return;
    }
  }

  #operate(act: Extract<Act, { kind: 'put' | 'delete' | 'deleteFirst' }>): void {
    const { server, namespace } = this;
    const { model } = server;
    if (act.kind === 'put') {
      if (server.noSpace) return;
      const lease = act.ttl > 0 ? server.grant(act.ttl).id : '0';
      this.#foreign += 1;
      model.txn({
        compares: [],
        success: [{ type: 'put', key: namespace + act.key, value: `foreign ${this.#foreign}`, lease }],
      });
      return;
    }
    const key =
      act.kind === 'delete'
        ? namespace + act.key
        : [...this.oracle.keys.keys()].find((one) => storeKey(namespace, one).kind === act.what);
    if (key !== undefined) model.txn({ compares: [], success: [{ type: 'delete', target: { key } }] });
  }

  /** What befalls a process from without; false when it is for its user to do. */
  #toProcess(process: Process, act: Act): boolean {
    const { server } = this;
    const { memory, loop, store } = process;
    switch (act.kind) {
      case 'crash':
        process.state = 'crashed';
        loop.kill();
        server.crash(memory);
        return true;
      case 'cut':
        server.cut(memory);
        return true;
      case 'partition':
        server.partition(memory);
        this.#after(act.ms, () => {
          server.heal(memory, act.healing);
          if (act.healing !== 'silent') return;
          process.isSilenced = true;
          this.#after(PING_MS, () => this.#ping(process));
        });
        return true;
      case 'freeze':
        server.freeze(memory);
        this.#after(act.ms, () => server.thaw(memory));
        return true;
      case 'stall':
        loop.hold();
        this.#after(act.ms, () => loop.release());
        return true;
      case 'deafen':
        store.setDeaf(true);
        this.#after(act.ms, () => store.setDeaf(false));
        return true;
      case 'loseRequests':
        server.loseRequests(memory, act.count);
        return true;
      case 'loseReplies':
        server.loseReplies(memory, act.count);
        return true;
      case 'revoke': {
        const lease = process.shared?.session.leaseId;
        if (lease !== undefined) this.#asNobody(() => server.model.revoke(lease));
        return true;
      }
      default:
        return false;
    }
  }

  #asUser(id: number, process: Process, act: Act): void {
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
      case 'removeDir':
        client[act.kind](act.path).catch((error: unknown) => this.#expected(act.kind, error));
        return;
      case 'list':
        client.list(act.path).then(
          (listing) => this.oracle.listed(process, act.path, listing, `${process.name}'s list of ${act.path}`),
          (error: unknown) => this.#expected('list', error),
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
      key: this.namespace + path,
      heartbeat,
      version: 1,
      registration: undefined,
      phase: 'adding',
    };
    this.registrations.set(id, record);
    process.client?.addKey(path, registeredValue(record, 1), { heartbeat, wait }).then(
      (registration) => {
        record.registration = registration;
        record.phase = 'live';
        registration.state$.subscribe((state) =>
          this.trace(() => `${process.name} ${path}: ${state} ${registration.error?.message ?? ''}`),
        );
      },
      (error: unknown) => {
        record.phase = 'refused';
        this.#expected(`addKey ${path}`, error);
      },
    );
  }

  #update(of: number): void {
    const record = this.registrations.get(of);
    if (!record?.registration || record.phase !== 'live') return;
    record.version += 1;
    record.registration
      .update(registeredValue(record, record.version))
      .catch((error: unknown) => this.#expected('update', error));
  }

  #remove(of: number): void {
    const record = this.registrations.get(of);
    if (!record?.registration || record.phase !== 'live') return;
    const { connection } = record.process.shared as NonNullable<Process['shared']>;
    const { link } = connection;
    record.phase = 'removing';
    record.registration.remove().then(
      () => {
        if (record.process.state !== 'open' || !link || connection.link?.generation !== link.generation) return;
        record.phase = 'removed';
        const kv = this.oracle.keys.get(record.key);
        const stored = kv ? Buffer.from(kv.value).toString() : '';
        if (stored.startsWith(`${record.process.name}#${of} `)) {
          this.oracle.fail('API', `remove of ${record.key} resolved, and the store has ${stored}`);
        }
      },
      (error: unknown) => this.#expected('remove', error),
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
    this.subscriptions.set(id, subscription);
    const options = { watch: true, via, missing } as const;
    const list = values
      ? process.client?.list(path || '/', { ...options, values })
      : process.client?.list(path || '/', options);
    const subscribed = list?.subscribe({
      next: (listing: Listing) => {
        this.trace(
          () =>
            `${process.name} subscription ${id} to ${path || '/'}: [${listing.children}] at ${listing.revision}` +
            ` epoch ${listing.epoch} ${listing.status}`,
        );
        this.oracle.heard(subscription, listing);
        subscription.last = listing;
        subscription.heard += 1;
      },
      error: (error: unknown) => {
        subscription.state = 'absent';
        const isAbsent = error instanceof PathNotFoundError || error instanceof NotADirectoryError;
        if (isAbsent && missing === 'error' && subscription.heard === 0) return;
        this.oracle.fail('API', `subscription ${id} of ${process.name} to ${path || '/'} ended: ${String(error)}`);
      },
      complete: () => {
        if (process.state === 'open')
          this.oracle.fail('API', `subscription ${id} of ${process.name} completed by itself`);
        if (subscription.state === 'open') subscription.state = 'completed';
      },
    });
    subscription.leave = () => subscribed?.unsubscribe();
  }

  #unwatch(of: number): void {
    const subscription = this.subscriptions.get(of);
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
    const startMs = this.nowMs();
    process.state = 'closing';
    // What is awaited of the store is known to have been answered only where the link has not been lost since.
    let hasFailed = link === undefined;
    const off = connection.linkDown.add(() => {
      hasFailed = true;
    });
    await client.close();
    off();
    process.state = 'closed';
    this.trace(() => `${process.name} is closed`);
    const tookMs = this.nowMs() - startMs;
    if (tookMs > CLOSE_MS && loop.isRunning && loop.heldMs < startMs)
      this.oracle.fail('API', `${process.name} took ${tookMs} ms to close`);
    if (!hasFailed && tookMs < QUICK_CLOSE_MS && lease !== undefined) {
      const left = [...this.oracle.keys.values()].filter((kv) => kv.lease === lease).map((kv) => kv.key);
      if (left.length > 0) this.oracle.fail('R2', `${process.name} is closed, and ${left} is still there`);
    }
    this.clock.setTimeout(() => {
      const { streams } = process.store;
      if (!loop.isRunning || loop.timers + streams + shared.hub.size === 0) return;
      this.oracle.fail(
        'S3',
        `${process.name} is closed and has ${loop.timers} timers, ${streams} streams, ${shared.hub.size} watches`,
      );
    }, SETTLED_MS);
  }

  /** A user's call failed: with an error of ours, or the library is to blame. */
  #expected(call: string, error: unknown): void {
    this.trace(() => `${call}: ${String(error)}`);
    if (!(error instanceof EphemeralError)) this.oracle.fail('API', `${call} failed with ${String(error)}`);
  }
}
