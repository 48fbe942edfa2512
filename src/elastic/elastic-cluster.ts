import { addAbortListener } from 'node:events';
import { BehaviorSubject, distinctUntilChanged, map, type Observable } from 'rxjs';
import { messageOf } from '../core/log.ts';
import type { Ephemeral } from '../ephemeral/api.ts';
import { ConvergenceFlag, hasConverged, isSettled } from './convergence.ts';
import { ClusterStateError } from './errors.ts';
import { HostAgent } from './host-agent.ts';
import { toHex } from './ids.ts';
import { leaveCluster } from './leave.ts';
import type { Blocked, Change, Wanted } from './model.ts';
import { checkSize, type ElasticConfig, type ElasticOptions, resolveElasticOptions } from './options.ts';
import { KEYS } from './records.ts';

/** Why a host's part in its cluster is over. `last`: it was to leave and is the last member, so it stopped and keeps its data. */
export interface ElasticExit {
  readonly reason: 'stopped' | 'left' | 'last' | 'failed';
  readonly error?: Error | undefined;
}

/** This host, as it is now. */
export interface HostStatus {
  readonly host: string;
  readonly state: 'starting' | 'running' | 'leaving' | 'stopped';
  readonly role: 'client' | 'learner' | 'voter';
  /** Hexadecimal, as etcdctl prints it. */
  readonly clusterId?: string | undefined;
  readonly memberId?: string | undefined;
  readonly server: 'running' | 'exited' | 'none';
  readonly serverPid?: number | undefined;
  readonly isController: boolean;
  readonly converged: boolean;
  readonly wanted?: Wanted | undefined;
  readonly change?: Change | undefined;
  readonly blocked: readonly Blocked[];
}

/** What `interrupt` did. `stop`: no other host is there to go on, so this one leaves nothing, and keeps its data. */
export type Interruption =
  | { readonly did: 'leave' | 'stop' | 'force' }
  | { readonly did: 'tell'; readonly waitsFor: string };

/**
 * This host's part in an elastic etcd cluster: it runs an etcd where one is wanted, and a client in any case.
 *
 *   const cluster = new ElasticCluster({ hostname: 'h1', seeds: [...] });
 *   await cluster.start();
 *   await cluster.ephemeral.addKey('/service/h1', '…');
 */
export class ElasticCluster implements AsyncDisposable {
  /** Resolves when this host's part is over, for whatever reason. Never rejects. */
  readonly exited: Promise<ElasticExit>;
  readonly #config: ElasticConfig;
  readonly #signal: AbortSignal | undefined;
  readonly #status: BehaviorSubject<HostStatus>;
  readonly #leaveStop = new AbortController();
  #agent: HostAgent | undefined;
  #flag: ConvergenceFlag | undefined;
  #state: HostStatus['state'] = 'starting';
  #ending: Promise<ElasticExit> | undefined;
  #interruptions = 0;
  #resolveExit: (exit: ElasticExit) => void = () => {};

  /** @throws InvalidOptionError */
  constructor(options: ElasticOptions = {}) {
    this.#config = resolveElasticOptions(options);
    this.#signal = options.signal;
    this.exited = new Promise((resolve) => {
      this.#resolveExit = resolve;
    });
    this.#status = new BehaviorSubject(this.#describe());
  }

  /** What this host is and sees. Replays the current state; completes when its part is over. */
  get status$(): Observable<HostStatus> {
    return this.#status.asObservable();
  }

  /** Whether every host sees nothing left to do, and what is wanted is there. */
  get converged$(): Observable<boolean> {
    return this.#status.pipe(
      map((status) => status.converged),
      distinctUntilChanged(),
    );
  }

  /** A client of the cluster that follows its members. ClusterStateError before `start()` has resolved. */
  get ephemeral(): Ephemeral {
    const ephemeral = this.#agent?.coordination?.ephemeral;
    if (!ephemeral) throw new ClusterStateError('the cluster’s host is not started: await start() first');
    return ephemeral;
  }

  /** The client with `prefix` before every key. */
  withNamespace(prefix: string): Ephemeral {
    return this.ephemeral.withNamespace(prefix);
  }

  /**
   * Resolves when the host is usable: it has a client, and a member if it was to have one at once. A host with data waits for the
   * members it had without end; any other has one deadline for all.
   * @throws ElasticTimeoutError, WrongClusterError, DuplicateHostError, EtcdProcessError, FolderInUseError, ClusterStateError
   */
  async start(): Promise<void> {
    if (this.#agent) throw new ClusterStateError('start() was called before: make a new ElasticCluster');
    const signal = this.#signal ?? new AbortController().signal;
    try {
      signal.throwIfAborted();
      this.#agent = new HostAgent(this.#config);
      this.#agent.changed.add(() => this.#update());
      this.#agent.failed.add((error) => void this.#end('failed', error));
      await this.#agent.start(signal);
    } catch (error) {
      await this.#end('failed', error instanceof Error ? error : new Error(messageOf(error)));
      throw error;
    }
    addAbortListener(signal, () => void this.stop());
    const { coordination } = this.#agent;
    if (coordination && this.#agent.keeper) this.#flag = new ConvergenceFlag(coordination, this.#config.hostname);
    this.#state = this.#ending ? this.#state : 'running';
    this.#update();
  }

  /** Stops and stays a member, with its data. Idempotent. */
  async stop(): Promise<void> {
    this.#leaveStop.abort(new ClusterStateError('stopped before it had left'));
    await this.#end('stopped');
  }

  /** Leaves for good: its member is removed, its data put aside. The last member only stops. Idempotent. */
  async leave(): Promise<ElasticExit> {
    const agent = this.#agent;
    if (!agent || this.#ending) return this.exited;
    if (this.#state !== 'leaving') {
      this.#state = 'leaving';
      this.#update();
      if (!this.#isAlone) this.#config.logger.info(`${this.#config.hostname} leaves the cluster`);
      leaveCluster(agent, this.#leaveStop.signal).then(
        (how) => this.#end(how),
        (error: unknown) => {
          if (!this.#leaveStop.signal.aborted) void this.#end('failed', error as Error);
        },
      );
    }
    return this.exited;
  }

  /** What ^C does: the first leaves, the second says what is waited for, the third ends it at once. */
  interrupt(): Interruption {
    this.#interruptions += 1;
    if (this.#interruptions === 1 && this.#state === 'running') {
      const did = this.#isAlone ? 'stop' : 'leave';
      void this.leave();
      return { did };
    }
    if (this.#interruptions <= 2) return { did: 'tell', waitsFor: this.#agent?.waitsFor ?? 'nothing' };
    this.#leaveStop.abort(new ClusterStateError('forced'));
    void this.#end('failed', new ClusterStateError('forced to end before it had left'), 'kill');
    return { did: 'force' };
  }

  /** Says how many voters there should be: a whole number from 1 to 99. What is stored beats every host's own option. */
  async setIdealClusterSize(size: number): Promise<void> {
    checkSize(size);
    const { coordination } = this.#agent ?? {};
    if (!coordination) throw new ClusterStateError('the cluster’s host is not started: await start() first');
    const key = this.#config.namespace + KEYS.idealSize;
    await coordination.shared.connection.txn({ compares: [], success: [{ type: 'put', key, value: String(size) }] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #end(reason: ElasticExit['reason'], error?: Error, etcd: 'stop' | 'kill' = 'stop'): Promise<ElasticExit> {
    this.#ending ??= (async () => {
      this.#flag?.close();
      await this.#agent?.close(etcd).catch((failure: unknown) => this.#config.logger.error(messageOf(failure)));
      const exit: ElasticExit = error === undefined ? { reason } : { reason, error };
      this.#state = 'stopped';
      this.#update();
      this.#status.complete();
      this.#resolveExit(exit);
      return exit;
    })();
    return this.#ending;
  }

  #update(): void {
    const keys = this.#agent?.coordination?.keys;
    const settled =
      keys !== undefined && this.#state === 'running' && isSettled(keys, this.#config.hostname, this.#role);
    this.#flag?.set(settled, keys);
    // Told from elsewhere, with `ephemeral elastic leave`.
    if (this.#state === 'running' && keys?.leaving.includes(this.#config.hostname)) void this.leave();
    this.#status.next(this.#describe());
  }

  /** With a member, and nobody there to take over. */
  get #isAlone(): boolean {
    const keys = this.#agent?.coordination?.keys;
    if (!keys || this.#agent?.holds === undefined) return false;
    return keys.volunteers.every(({ host }) => host === this.#config.hostname || keys.leaving.includes(host));
  }

  get #role(): HostStatus['role'] {
    return this.#agent?.keeper?.role ?? 'client';
  }

  #describe(): HostStatus {
    const agent = this.#agent;
    const keys = this.#state === 'stopped' ? undefined : agent?.coordination?.keys;
    const clusterId = agent?.state.current?.clusterId;
    const memberId = agent?.holds;
    return {
      host: this.#config.hostname,
      state: this.#state,
      role: this.#role,
      clusterId: clusterId === undefined ? undefined : toHex(clusterId),
      memberId: memberId === undefined ? undefined : toHex(memberId),
      server: agent?.server?.isRunning ? 'running' : memberId === undefined ? 'none' : 'exited',
      serverPid: agent?.server?.pid,
      isController: agent?.controller?.isController ?? false,
      converged: keys !== undefined && hasConverged(keys),
      wanted: keys?.plan?.wanted,
      change: keys?.change,
      blocked: keys?.plan?.blocked ?? [],
    };
  }
}
