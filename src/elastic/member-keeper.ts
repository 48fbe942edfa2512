import { debugLog, messageOf } from '../core/log.ts';
import type { Registration } from '../ephemeral/api.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { Coordination } from './coordination.ts';
import type { DataFolder } from './data-folder.ts';
import type { EndpointBook } from './endpoint-book.ts';
import type { EtcdExit } from './etcd-process.ts';
import { toHex } from './ids.ts';
import { OUTAGE_MS } from './limits.ts';
import type { LocalServer } from './local-server.ts';
import type { Nomination } from './model.ts';
import { isAskedToPromote, promoteSelf } from './nominee.ts';
import { leaseLeftMs, nomineePort } from './nominee-port.ts';
import type { ElasticConfig } from './options.ts';
import { mayHaveBeenRemoved, wasRemoved } from './own-removal.ts';
import { KEYS } from './records.ts';
import type { StateFile } from './state-file.ts';
import { isToGo } from './to-go.ts';
import { volunteerValue } from './volunteer-value.ts';

const log = debugLog('member');

const TICK_MS = 250;
/** While its etcd starts: it is part of its cluster at any moment. One that has no quorum for longer is looked after as ever. */
const STARTING_MS = 20;
const STARTED_WITHIN_MS = 5_000;
/** An etcd that ends is started again: at once, then after so long each time. */
const RESTART_MS = [0, 500, 1_000, 2_000, 5_000, 10_000];
/** So many ends in a row, each before it was ready, are no accident. */
const GIVEN_UP_AFTER = 3;

export interface KeeperContext {
  readonly config: ElasticConfig;
  readonly coordination: Coordination;
  readonly server: LocalServer;
  readonly folder: DataFolder;
  readonly state: StateFile;
  readonly admin: ClusterAdmin;
  readonly book: EndpointBook;
  readonly incarnation: string;
  readonly etcdVersion: string;
  readonly afterOutage: boolean;
  readonly onChange: () => void;
}

/** Does on this host what the cluster's keys ask of it: starts the member it is nominated for, promotes it, publishes it. */
export class MemberKeeper {
  readonly #context: KeeperContext;
  readonly #off: readonly (() => void)[];
  readonly #timer: NodeJS.Timeout;
  #outage: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #startedAtMs: number;
  #volunteer: Registration | undefined;
  #endpoint: Registration | undefined;
  #role: 'client' | 'learner' | 'voter' = 'client';
  #problem: string | undefined;
  #failures = 0;
  /** Members that were removed: the order to run one may be cleared a moment later. */
  readonly #former = new Set<string>();
  #isBusy = false;
  #isAgain = false;
  #isClosed = false;

  constructor(context: KeeperContext) {
    this.#context = context;
    const { coordination, server } = context;
    this.#startedAtMs = this.#nowMs;
    this.#off = [coordination.changed.add(() => this.poke()), server.ended.add((exit) => this.#onEnded(exit))];
    this.#timer = setInterval(() => this.poke(), TICK_MS);
    // It may have ended while nobody listened yet.
    if (this.holds !== undefined && server.exit) this.#onEnded(server.exit);
  }

  get role(): 'client' | 'learner' | 'voter' {
    return this.#role;
  }

  /** The member whose data lies here. */
  get holds(): string | undefined {
    return this.#context.state.current?.memberId;
  }

  /** Offers this host. Resolves when it is registered. */
  async volunteer(): Promise<void> {
    const { coordination, config, afterOutage } = this.#context;
    if (afterOutage) this.#outage = setTimeout(() => this.#forgetOutage(), OUTAGE_MS);
    this.#volunteer = await coordination.own.addKey(KEYS.volunteer + config.hostname, this.#value());
    this.poke();
  }

  /** Looks again at what is asked of this host, now or after the look under way. */
  poke(): void {
    if (this.#isClosed) return;
    this.#isAgain = true;
    if (!this.#isBusy) void this.#run();
  }

  /** Takes this member's address out of the list that clients follow. */
  async unpublish(): Promise<void> {
    this.#context.book.prefer(undefined);
    const endpoint = this.#endpoint;
    this.#endpoint = undefined;
    await endpoint?.remove();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#outage);
    clearTimeout(this.#soon);
    this.#outage = undefined;
    for (const off of this.#off) off();
  }

  async #run(): Promise<void> {
    this.#isBusy = true;
    try {
      while (this.#isAgain && !this.#isClosed) {
        this.#isAgain = false;
        await this.#look();
      }
    } catch (error) {
      log('%s', messageOf(error));
    } finally {
      this.#isBusy = false;
    }
  }

  async #look(): Promise<void> {
    const { coordination, config, incarnation, server } = this.#context;
    const { keys } = coordination;
    if (!keys || !this.#volunteer) return;
    const order = keys.nominations.find((one) => one.host === config.hostname && one.incarnation === incarnation);
    const isDue = order !== undefined && order.memberId !== this.holds && !this.#former.has(order.memberId);
    if (isDue && !server.isRunning) await this.#join(order);
    const memberId = this.holds;
    if (memberId === undefined) return;
    const { change } = keys;
    if (change?.kind === 'remove' && change.phase === 'done' && change.memberId === memberId && server.isRunning) {
      await server.endAfterRemoval();
      return this.#putAway();
    }
    const nominee = { host: config.hostname, incarnation, memberId };
    if (this.#role !== 'voter' && isAskedToPromote(change, nominee))
      await promoteSelf(
        nomineePort(this.#context, () => this.poke()),
        nominee,
      );
    if (server.isRunning) await this.#publish(isToGo(keys, config.hostname, memberId));
  }

  /** The order may be old: it counts only while this host's own lease lives, and for this very start of the agent. */
  async #join({ memberId, initialCluster }: Nomination): Promise<void> {
    const { folder, state, server, config } = this.#context;
    if (leaseLeftMs(this.#context.coordination) <= 0) return;
    config.logger.info(`joining as member ${toHex(memberId)}`);
    if (folder.hasLog) folder.archive(this.holds ?? 'unknown');
    folder.clear();
    state.update({ memberId, initialCluster });
    this.#startedAtMs = this.#nowMs;
    // etcd takes longer to start than the word that this host holds the member now, and is seen by nobody before.
    await Promise.all([this.#volunteer?.update(this.#value()), server.start({ initialCluster, state: 'existing' })]);
    this.poke();
  }

  /** A member is listed for clients once it has answered a linearizable read itself, and while it is meant to stay. */
  async #publish(isLeaving: boolean): Promise<void> {
    const { server, coordination, config, book } = this.#context;
    if (isLeaving) return this.unpublish();
    if (this.#endpoint) return;
    const status = await server.status();
    if (!status || status.leader === '0') return this.#lookSoon();
    this.#enter(status.isLearner ? 'learner' : 'voter');
    // It has a log of its own now, and starts from nothing else any more.
    this.#context.state.update({ initialCluster: undefined });
    await this.#recover();
    if (status.isLearner) return this.unpublish();
    if (!(await server.hasQuorum())) {
      this.#lookSoon();
      return this.unpublish();
    }
    book.prefer(server.url);
    const urls = config.advertiseClientUrls.join();
    this.#endpoint = await coordination.own.addKey(KEYS.endpoints + config.hostname, urls, { wait: false });
  }

  get #nowMs(): number {
    return this.#context.coordination.shared.connection.clock.now();
  }

  #lookSoon(): void {
    clearTimeout(this.#soon);
    if (this.#nowMs - this.#startedAtMs > STARTED_WITHIN_MS) return;
    this.#soon = setTimeout(() => this.poke(), STARTING_MS);
  }

  #onEnded(exit: EtcdExit): void {
    this.#context.config.logger.warn(`etcd ended: ${exit.text}`);
    this.#enter('client');
    // What it tells the cluster meanwhile fails when the host is stopped, which is nobody's fault.
    this.#bringBack(exit).catch((error: unknown) => log('%s', messageOf(error)));
  }

  async #bringBack(exit: EtcdExit): Promise<void> {
    // A cluster that has just lost its leader takes no word of it before it has another one, and that one may be this host's.
    this.unpublish().catch((error: unknown) => log('%s', messageOf(error)));
    for (let attempt = 0; !this.#isClosed && !this.#context.server.isRunning; attempt++) {
      const waitMs = RESTART_MS[Math.min(attempt + this.#failures, RESTART_MS.length - 1)] ?? 0;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (this.#isClosed) return;
      const isFirst = attempt === 0 && this.#failures === 0;
      if (mayHaveBeenRemoved(exit, isFirst) && (await wasRemoved(this.#context))) return this.#putAway();
      if (this.#hasLostItsData) return this.#declareLoss();
      if (await this.#restart(exit)) return;
    }
  }

  /** It has run, and nothing of that is left: under its old id in an empty folder it would know nothing of what it has voted for. */
  get #hasLostItsData(): boolean {
    const { folder, state } = this.#context;
    return !folder.hasLog && state.current?.initialCluster === undefined;
  }

  /** Invariant C9: says that it holds nothing. The controller lets the old member go, and this host joins under a new id. */
  async #declareLoss(): Promise<void> {
    const { config } = this.#context;
    config.logger.error(
      `the data of member ${toHex(this.holds ?? '')} is gone from ${config.dataDir}: it joins anew once it was removed`,
    );
    await this.#forsake();
  }

  async #restart(exit: EtcdExit): Promise<boolean> {
    const { server, folder, state } = this.#context;
    this.#failures += 1;
    if (this.#failures >= GIVEN_UP_AFTER)
      await this.#admit(`its etcd ends again and again (${exit.text}): ${server.tail()}`);
    // Once there is a log it starts from that, or not at all.
    if (folder.hasLog) state.update({ initialCluster: undefined });
    const initialCluster = state.current?.initialCluster;
    this.#startedAtMs = this.#nowMs;
    try {
      await server.start(initialCluster === undefined ? undefined : { initialCluster, state: 'existing' });
      return true;
    } catch (error) {
      log('%s', messageOf(error));
      return false;
    }
  }

  async #putAway(): Promise<void> {
    const { folder, config } = this.#context;
    const memberId = this.holds;
    if (memberId === undefined) return;
    config.logger.info(`member ${toHex(memberId)} was removed: its data is kept as removed-${toHex(memberId)}`);
    folder.archive(memberId);
    await this.#forsake();
  }

  /** From here on it is no member, and no order that is older makes it one again. */
  async #forsake(): Promise<void> {
    const { state } = this.#context;
    if (this.holds !== undefined) this.#former.add(this.holds);
    state.update({ memberId: undefined, initialCluster: undefined });
    this.#failures = 0;
    this.#problem = undefined;
    this.#enter('client');
    this.#context.onChange();
    await this.#volunteer?.update(this.#value());
    await this.unpublish();
  }

  #forgetOutage(): void {
    this.#outage = undefined;
    this.#volunteer?.update(this.#value()).catch((error: unknown) => log('%s', messageOf(error)));
  }

  async #admit(problem: string): Promise<void> {
    if (this.#problem !== undefined) return;
    this.#problem = problem;
    this.#context.config.logger.error(problem);
    await this.#volunteer?.update(this.#value()).catch((error: unknown) => log('%s', messageOf(error)));
  }

  async #recover(): Promise<void> {
    this.#failures = 0;
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    await this.#volunteer?.update(this.#value());
  }

  #enter(role: 'client' | 'learner' | 'voter'): void {
    if (this.#role === role) return;
    this.#role = role;
    log('%s is a %s', this.#context.config.hostname, role);
    this.#context.onChange();
  }

  #value(): string {
    return volunteerValue(this.#context, this.#problem, this.#outage !== undefined);
  }
}
