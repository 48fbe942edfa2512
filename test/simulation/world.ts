import type { Store } from '../../src/core/store.ts';
import { openShared } from '../../src/ephemeral/connect.ts';
import { EphemeralOverStore } from '../../src/ephemeral/ephemeral.ts';
import { resolveOptions } from '../../src/ephemeral/options.ts';
import { MemoryServer } from '../../src/memory/memory-server.ts';
import { type MemoryService, MemoryStore } from '../../src/memory/memory-store.ts';
import { MemoryKeepAliveStream } from '../../src/memory/memory-streams.ts';
import type { Snapshot } from '../../src/memory/model.ts';
import { Chance } from './chance.ts';
import { EventLoop } from './event-loop.ts';
import { MirrorWrites } from './mirror-writes.ts';
import { Oracle, type OracleWorld } from './oracle.ts';
import type { Act, Action, Program } from './program.ts';
import type { Process, RegistrationRecord, SubscriptionRecord } from './records.ts';
import { SimulatedClock } from './simulated-clock.ts';
import { storeKey } from './store-keys.ts';
import { ProcessStore } from './stores.ts';
import { Users } from './users.ts';

/** Takes a safeguard away from what a process does to its store. */
export type Mutation = (store: Store, world: World, process: () => Process) => Store;

const CONNECT_TIMEOUT_MS = 10_000;
/** What a slow network adds to each message, at most. */
const SLOW_MS = 400;
/** A silent peer is noticed by HTTP/2's own pings after so long, which the model has not. */
const PING_MS = 8_000;

export class World implements OracleWorld {
  readonly program: Program;
  readonly namespace: string;
  readonly ttlMs: number;
  readonly isBrief: boolean;
  readonly clock: SimulatedClock;
  readonly server: MemoryServer;
  readonly oracle: Oracle;
  readonly users = new Users(this);
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
        process.loop.pass(() => this.users.do(id, process, act));
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
        this.users.expected('connect', error);
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
}
