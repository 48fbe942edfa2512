import type { Clock, Timer } from '../core/clock.ts';
import type { KeepAliveObserver, KeepAliveStream, Lease, WatchObserver, WatchStream } from '../core/store.ts';
import type { Commit } from './commit-log.ts';
import type { Delay, Network } from './exchange.ts';
import { type MemoryService, MemoryStore } from './memory-store.ts';
import { MemoryKeepAliveStream, MemoryWatchStream } from './memory-streams.ts';
import { Model, type ModelOptions, type Snapshot } from './model.ts';
import { Transport } from './transport.ts';

/** The longest delay that a timer takes (2^31 - 1 ms); beyond it Node fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

export interface MemoryServerOptions extends ModelOptions {
  readonly clock: Clock;
  /** How many milliseconds each message travels. Default 0 for all: they arrive in microtasks. */
  readonly delayMs?: Delay | undefined;
}

/** An etcd of one member in memory: the model with a clock, clients, and faults to order. */
export class MemoryServer implements Network, MemoryService {
  readonly clock: Clock;
  readonly delayMs: Delay;
  /** The state itself, to look at past all faults. Lease deadlines are the server's business: it arms their timer. */
  readonly model: Model;
  readonly #transports = new Set<Transport>();
  readonly #watches = new Set<MemoryWatchStream>();
  readonly #listeners = new Set<(commit: Commit) => void>();
  #clientCount = 0;
  #running = true;
  #expiry: { readonly timer: Timer; readonly dueMs: number } | undefined;

  constructor({ clock, delayMs, ...options }: MemoryServerOptions) {
    this.clock = clock;
    this.delayMs = delayMs ?? (() => 0);
    this.model = new Model(options, (commit) => this.#onCommit(commit));
  }

  get running(): boolean {
    return this.#running;
  }

  /** A new client with a connection of its own. */
  client(name = `client-${++this.#clientCount}`): MemoryStore {
    const transport = new Transport(name, this);
    this.#transports.add(transport);
    return new MemoryStore(transport, this);
  }

  /** Hears every revision when it is made, before any client does. Returns how to stop that. */
  onCommit(listener: (commit: Commit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The process is gone: it sends nothing more, and its calls and streams stay without an end. */
  crash(client: MemoryStore): void {
    client.transport.crash();
    this.#transports.delete(client.transport);
  }

  /** Nothing passes between client and server. Calls time out; streams say nothing. */
  partition(client: MemoryStore): void {
    client.transport.partition();
  }

  /**
   * Ends partitions. What became of the connection meanwhile: `resume`: it lived on, and what was held back arrives now, except
   * calls that have timed out; `end`: it broke, and streams end; `silent`: it broke, and nobody is told.
   */
  heal(client?: MemoryStore, streams: 'resume' | 'end' | 'silent' = 'resume'): void {
    for (const transport of client ? [client.transport] : this.#transports) transport.heal(streams);
  }

  /** The client's connection breaks, and it notices at once. */
  cut(client: MemoryStore): void {
    client.transport.cut();
  }

  /**
   * The member that the client is connected to stands still. What is sent to it is done, late, when it thaws, whether or not the
   * caller still waits. `connect()` takes the client to another member, which works.
   */
  freeze(client: MemoryStore): void {
    client.transport.freeze();
  }

  thaw(client: MemoryStore): void {
    client.transport.thaw();
  }

  /** The client's next writes are lost on their way: not done, and ConnectionError for the caller. */
  loseRequests(client: MemoryStore, count = 1): void {
    client.transport.lostRequests += count;
  }

  /** The client's next writes are done (or refused), and their answers lost: ConnectionError for the caller. */
  loseReplies(client: MemoryStore, count = 1): void {
    client.transport.lostReplies += count;
  }

  /** Connections break, calls fail at once, leases do not expire. */
  stop(): void {
    if (!this.#running) return;
    this.#running = false;
    this.#disarm();
    this.#resetAll();
  }

  /** With a new leader: the term rises and every lease gets its whole ttl again. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.model.elect(this.nowMs());
    this.#arm();
  }

  restart(): void {
    this.stop();
    this.start();
  }

  /** Forgets what is older than a revision. Default: the current one. */
  compact(revision = this.model.header.revision): void {
    this.model.compact(revision);
  }

  get noSpace(): boolean {
    return this.model.noSpace;
  }

  /** The NOSPACE alarm: puts and lease grants are refused; deletes, renewals and expiry go on. */
  set noSpace(raised: boolean) {
    this.model.noSpace = raised;
  }

  snapshot(): Snapshot {
    return this.model.snapshot();
  }

  /** Data, revision and leases are again as in the snapshot, the cluster id stays, the term falls, connections break. */
  restore(snapshot: Snapshot): void {
    this.model.restore(snapshot, this.nowMs());
    this.#rebuilt();
  }

  /** A new, empty cluster with another id answers at the same address. */
  wipe(): void {
    this.model.wipe();
    this.#rebuilt();
  }

  /** Stops for good: no timer is left. */
  close(): void {
    this.stop();
    this.#transports.clear();
    this.#listeners.clear();
  }

  nowMs(): number {
    return this.clock.now();
  }

  grant(ttl: number): Lease {
    const lease = this.model.grant(ttl, this.nowMs());
    this.#arm(this.nowMs() + lease.ttl * 1_000);
    return lease;
  }

  openWatch(transport: Transport, observer: WatchObserver): WatchStream {
    return new MemoryWatchStream(transport, this.model, observer, this.#watches);
  }

  openKeepAlive(transport: Transport, observer: KeepAliveObserver): KeepAliveStream {
    return new MemoryKeepAliveStream(transport, observer, (leaseId) => this.model.keepAlive(leaseId, this.nowMs()));
  }

  #onCommit(commit: Commit): void {
    for (const listener of this.#listeners) listener(commit);
    for (const stream of this.#watches) stream.commit(commit);
  }

  #resetAll(): void {
    for (const transport of this.#transports) transport.reset();
  }

  #rebuilt(): void {
    this.#resetAll();
    this.#disarm();
    if (this.#running) this.#arm();
  }

  /** One timer for the earliest deadline. A renewal leaves it alone: it then finds nothing expired and arms itself anew. */
  #arm(deadlineMs = this.model.nextDeadlineMs()): void {
    if (deadlineMs === undefined || (this.#expiry && this.#expiry.dueMs <= deadlineMs)) return;
    this.#disarm();
    const expire = () => {
      this.#expiry = undefined;
      this.model.expire(this.nowMs());
      this.#arm();
    };
    const delayMs = Math.min(Math.max(0, deadlineMs - this.nowMs()), MAX_TIMER_MS);
    this.#expiry = { timer: this.clock.setTimeout(expire, delayMs), dueMs: deadlineMs };
  }

  #disarm(): void {
    this.#expiry?.timer.clear();
    this.#expiry = undefined;
  }
}
