import type { Heartbeat } from '../index.ts';
import { DemoProcess } from './demo-process.ts';
import type { Facts, Heard, Note, ProcessState, ServiceFacts, Step, Tone } from './facts.ts';
import { Rate } from './rate.ts';
import type { GatewayReport, ServiceReport, Store, Traffic, WatcherReport } from './tasks.ts';
import { Waiting } from './waiting.ts';

const LEAVE_PATIENCE_MS = 4_000;
/** It tries for so long to delete what is in somebody else's etcd. */
const KEEPER_PATIENCE_MS = 40_000;
const NO_TRAFFIC: Traffic = { sent: 0, served: 0, failed: 0 };

/** A service under one name: one process after another. */
interface Service {
  readonly name: string;
  process: DemoProcess<'service'>;
  heartbeat: Heartbeat;
  state: ProcessState;
  /** How often its process was master. */
  masterships: number;
  /** Refreshes that its earlier processes heard as masters. */
  earlierRefreshes: number;
}

/** Messages counted at one moment, or between two. */
export interface Counts {
  readonly master: number;
  readonly mirrored: number;
  readonly direct: number;
}

export interface StageOptions {
  readonly endpoints: readonly string[] | undefined;
  readonly namespace: string;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
  /** A process has ended that should not have. */
  onBroken(error: Error): void;
  onNote(note: Note): void;
}

const heardBy = (watchers: readonly WatcherReport[] = []) => watchers.reduce((sum, { heard }) => sum + heard, 0);

/** All processes of the demo, and what they tell. */
export class Stage {
  readonly waiting: Waiting;
  readonly #options: StageOptions;
  readonly #startedMs = performance.now();
  readonly #services = new Map<string, Service>();
  readonly #notes: Note[] = [];
  readonly #rates = { master: new Rate(), mirrored: new Rate(), direct: new Rate() };
  #step: Step | undefined;
  #keeper: DemoProcess<'keeper'> | undefined;
  #store: Store | undefined;
  #gateway: DemoProcess<'gateway'> | undefined;
  #watchers: DemoProcess<'watchers'> | undefined;
  #listed: readonly string[] = [];
  #master: string | undefined;
  #isEnding = false;

  constructor(options: StageOptions) {
    this.#options = options;
    this.waiting = new Waiting(options.signal);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  get master(): string | undefined {
    return this.#master;
  }

  /** What every list shows, or undefined as long as they differ. */
  get agreed(): readonly string[] | undefined {
    const { mirrored = [], direct = [] } = this.#watchers?.report ?? {};
    const mine = this.#listed.join(' ');
    return [...mirrored, ...direct].every(({ list }) => list === mine) ? this.#listed : undefined;
  }

  enter(step: Step): void {
    this.#step = step;
  }

  note(text: string, tone: Tone = 'plain'): void {
    const note = { atMs: this.elapsedMs, text, tone };
    this.#notes.push(note);
    this.#options.onNote(note);
  }

  isListed(name: string): boolean {
    return this.#listed.includes(name);
  }

  traffic(name: string): Traffic {
    return this.#gateway?.report?.traffic[name] ?? NO_TRAFFIC;
  }

  get allTraffic(): Traffic {
    return Object.values(this.#gateway?.report?.traffic ?? {}).reduce(
      (sum, { sent, served, failed }) => ({
        sent: sum.sent + sent,
        served: sum.served + served,
        failed: sum.failed + failed,
      }),
      NO_TRAFFIC,
    );
  }

  pid(name: string): number {
    return this.#service(name).process.pid;
  }

  async startStore(): Promise<void> {
    const { endpoints, namespace } = this.#options;
    const keeper = new DemoProcess({ role: 'keeper', endpoints, namespace }, this.#events('keeper'));
    this.#keeper = keeper;
    const report = await this.waiting.settled(keeper.ready);
    this.#store = { endpoints: report.endpoints, namespace };
    const where =
      report.etcdPid === undefined ? `namespace ${namespace}` : `pid ${report.etcdPid}, in a temporary folder`;
    this.note(`etcd ${report.etcdVersion} answers at ${report.endpoints.join(', ')} (${where})`);
  }

  async startGateway(): Promise<void> {
    const events = { ...this.#events('gateway'), onReport: (report: GatewayReport) => this.#listReported(report) };
    this.#gateway = new DemoProcess({ role: 'gateway', store: this.#openStore }, events);
    await this.waiting.settled(this.#gateway.ready);
  }

  /** Brings the watchers to `count` of each kind. */
  async growWatchers(count: number): Promise<void> {
    this.#watchers ??= new DemoProcess({ role: 'watchers', store: this.#openStore }, this.#events('watchers'));
    const watchers = this.#watchers;
    await this.waiting.settled(watchers.ready);
    watchers.growTo(count);
    await this.waiting.until(() => {
      const { mirrored = [], direct = [] } = watchers.report ?? {};
      return (mirrored.length === count && direct.length === count) || undefined;
    }, `${count} watchers of each kind`);
  }

  /** Resolves when it is registered. A name whose former process has ended is taken over. */
  async startService(name: string, heartbeat: Heartbeat): Promise<void> {
    const former = this.#services.get(name);
    const task = { role: 'service', store: this.#openStore, name, heartbeat } as const;
    const service: Service = {
      name,
      heartbeat,
      state: 'starting',
      masterships: 0,
      earlierRefreshes: former ? former.earlierRefreshes + (former.process.report?.refreshes ?? 0) : 0,
      process: new DemoProcess(task, {
        onReport: (report) => this.#serviceReported(service, report),
        onExit: () => this.#serviceExited(service),
      }),
    };
    this.#services.set(name, service);
    await this.waiting.settled(service.process.ready);
    await this.waiting.until(
      () => this.#gateway === undefined || this.isListed(name) || undefined,
      `${name} on the list`,
    );
  }

  /** SIGKILL: it has no chance to say anything. */
  async crash(name: string): Promise<void> {
    const service = this.#service(name);
    service.state = 'killed';
    service.process.kill('SIGKILL');
    await service.process.exited;
  }

  /** SIGTERM: it deregisters, serves what is under way, and ends. */
  async leave(name: string): Promise<void> {
    const service = this.#service(name);
    service.state = 'draining';
    service.process.kill('SIGTERM');
    await this.waiting.settled(service.process.exited);
  }

  /** How many messages come in within `ms`. */
  async count(ms: number): Promise<Counts> {
    const before = await this.#countNow();
    await this.waiting.sleep(ms);
    const after = await this.#countNow();
    return {
      master: after.master - before.master,
      mirrored: after.mirrored - before.mirrored,
      direct: after.direct - before.direct,
    };
  }

  /** To be called now and then: rates are made from it. */
  sample(): void {
    const counts = this.#counts;
    const atMs = this.elapsedMs;
    for (const kind of ['master', 'mirrored', 'direct'] as const) this.#rates[kind].add(atMs, counts[kind]);
  }

  facts(): Facts {
    const keeper = this.#keeper?.report;
    const { served, failed } = this.allTraffic;
    const { mirrored = [], direct = [] } = this.#watchers?.report ?? {};
    const counts = this.#counts;
    const heard = (kind: keyof Counts, listeners: number): Heard => ({
      listeners,
      total: counts[kind],
      perSecond: this.#rates[kind].perSecond,
    });
    return {
      elapsedMs: this.elapsedMs,
      etcd: keeper ? `etcd ${keeper.etcdVersion}${keeper.etcdPid === undefined ? '' : ', started for this demo'}` : '',
      step: this.#step,
      services: [...this.#services.values()].map((service) => this.#serviceFacts(service)),
      listed: this.#listed,
      isStale: this.#gateway?.report?.status === 'stale',
      served,
      failed,
      master: this.#master,
      atMaster: heard('master', this.#master === undefined ? 0 : 1),
      atMirrored: heard('mirrored', mirrored.length),
      atDirect: heard('direct', direct.length),
      notes: this.#notes,
    };
  }

  /** Ends all processes: first those who use the store, then the store. Rejects when something had to be left there. */
  async end(): Promise<void> {
    this.#isEnding = true;
    const users = [this.#gateway, this.#watchers, ...[...this.#services.values()].map(({ process }) => process)];
    for (const service of this.#services.values()) if (service.state === 'up') service.state = 'draining';
    await Promise.all(users.map((process) => process?.end(LEAVE_PATIENCE_MS)));
    const wasOpen = this.#keeper?.report !== undefined && this.#keeper.failure === undefined;
    await this.#keeper?.end(KEEPER_PATIENCE_MS);
    if (wasOpen && this.#keeper?.failure !== undefined) throw new Error(this.#keeper.failure);
  }

  get #openStore(): Store {
    if (!this.#store) throw new Error('the store is started first');
    return this.#store;
  }

  get #counts(): Counts {
    const services = [...this.#services.values()];
    const watchers = this.#watchers?.report;
    return {
      master: services.reduce((sum, { earlierRefreshes: n, process }) => sum + n + (process.report?.refreshes ?? 0), 0),
      mirrored: heardBy(watchers?.mirrored),
      direct: heardBy(watchers?.direct),
    };
  }

  async #countNow(): Promise<Counts> {
    const up = [...this.#services.values()].filter(({ state }) => state === 'up');
    await this.waiting.settled(Promise.all([this.#watchers?.fresh(), ...up.map(({ process }) => process.fresh())]));
    return this.#counts;
  }

  #service(name: string): Service {
    const service = this.#services.get(name);
    if (!service) throw new Error(`there is no service ${name}`);
    return service;
  }

  #serviceFacts({ name, process, heartbeat, state }: Service): ServiceFacts {
    return {
      name,
      pid: process.pid,
      heartbeat,
      process: state,
      isListed: this.isListed(name),
      isMaster: this.#master === name,
      traffic: this.traffic(name),
      heard: process.report?.heard ?? 0,
    };
  }

  #events(role: string) {
    return {
      onReport: () => this.waiting.changed(),
      onExit: () => {
        if (!this.#isEnding) this.#broken(role, role === 'keeper' ? this.#keeper : undefined);
      },
    };
  }

  #broken(what: string, process: { readonly failure: string | undefined } | undefined): void {
    this.#options.onBroken(new Error(process?.failure ?? `the process of ${what} ended unexpectedly`));
  }

  #listReported({ listed }: GatewayReport): void {
    const names = listed.map(({ name }) => name);
    const before = new Set(this.#listed);
    this.#listed = names;
    for (const name of names) if (!before.delete(name)) this.note(`+ ${name} is on the list`, 'good');
    for (const name of before) this.note(`- ${name} is off the list`, 'bad');
    this.waiting.changed();
  }

  #serviceReported(service: Service, report: ServiceReport): void {
    if (service.state === 'starting') service.state = 'up';
    if (report.masterships > service.masterships) {
      service.masterships = report.masterships;
      this.#master = service.name;
      this.note(`${service.name} is the mirror’s master`, 'notice');
    }
    this.waiting.changed();
  }

  #serviceExited(service: Service): void {
    const isExpected = service.state === 'killed' || service.state === 'draining';
    if (service.state !== 'killed') service.state = 'down';
    if (this.#master === service.name) this.#master = undefined;
    if (!isExpected && !this.#isEnding) this.#broken(service.name, service.process);
    this.waiting.changed();
  }
}
