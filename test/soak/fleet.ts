/** A client process of the soak, its own way through the network, and all that it has said. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bindToThisProcess } from '../support/children.ts';
import type { EtcdProcess } from '../support/etcd-process.ts';
import { type Proxy as NetworkProxy, startProxy } from '../support/proxy.ts';
import type { ClientOrders, Order, Report, Sample } from './messages.ts';
import type { ProcessPlan } from './plan.ts';
import type { Stretch } from './pulse.ts';

const PROGRAM = fileURLToPath(new URL('./client.ts', import.meta.url));

const EXPLAIN_MS = 2_000;

export type Heard = Extract<Report, { is: 'listing' }>;

/** What one client of the process wants and was told. */
export interface ClientState {
  connectedMs: number | undefined;
  /** The value that its service has asked for; undefined: none now. */
  asked: string | undefined;
  /** When the service was not meant to be there, or had just been asked for. */
  readonly absences: { fromMs: number; untilMs: number | undefined }[];
  last: Heard | undefined;
}

export interface FleetListener {
  heard(process: FleetProcess, client: number, listing: Heard): void;
  broke(what: string): void;
}

export class FleetProcess {
  readonly plan: ProcessPlan;
  /** One to each member. They stay when the process is replaced. */
  readonly proxies: readonly NetworkProxy[];
  clients: ClientState[] = [];
  incarnation = 0;
  isReady = false;
  isQuiet = false;
  /** When something was wrong with it or its network: nobody may wonder then that its keys went. */
  readonly troubles: { fromMs: number; untilMs: number | undefined }[] = [];
  readonly samples: { readonly incarnation: number; readonly sample: Sample }[] = [];
  readonly #listener: FleetListener;
  readonly #seed: number;
  #child: ChildProcess | undefined;
  #isMeantToEnd = false;
  #onSample: ((sample: Sample) => void) | undefined;
  #onExplained: ((what: string) => void) | undefined;
  exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }> | undefined;

  private constructor(plan: ProcessPlan, proxies: readonly NetworkProxy[], seed: number, listener: FleetListener) {
    this.plan = plan;
    this.proxies = proxies;
    this.#seed = seed;
    this.#listener = listener;
  }

  static async make(plan: ProcessPlan, members: readonly EtcdProcess[], seed: number, listener: FleetListener) {
    const proxies = await Promise.all(members.map(({ endpoint }) => startProxy(endpoint)));
    return new FleetProcess(plan, proxies, seed, listener);
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    this.incarnation += 1;
    this.isReady = false;
    this.isQuiet = false;
    this.#isMeantToEnd = false;
    this.clients = this.plan.clients.map((_, i) => ({
      connectedMs: undefined,
      asked: undefined,
      absences: this.clients[i]?.absences ?? [],
      last: undefined,
    }));
    const orders: ClientOrders = {
      ...this.plan,
      incarnation: this.incarnation,
      hosts: this.proxies.map(({ endpoint }) => endpoint),
      seed: this.#seed,
    };
    const child = spawn(process.execPath, ['--expose-gc', '--import=tsx', PROGRAM, JSON.stringify(orders)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    bindToThisProcess(child);
    createInterface(child.stdout).on('line', (line) => this.#heard(JSON.parse(line) as Report));
    createInterface(child.stderr).on('line', (line) => this.#listener.broke(`${this.plan.name} wrote: ${line}`));
    child.stdin.on('error', () => {});
    this.exit = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        if (this.#child === child) this.#child = undefined;
        if (!this.#isMeantToEnd) this.#listener.broke(`${this.plan.name} ended by itself: ${signal ?? code}`);
        resolve({ code, signal });
      });
    });
  }

  order(order: Order): void {
    if (order.do === 'quiet' || order.do === 'busy') this.isQuiet = false;
    this.#child?.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  async kill(): Promise<void> {
    this.#isMeantToEnd = true;
    this.#child?.kill('SIGKILL');
    await this.exit;
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Closes its clients and ends by itself; how it ended, or undefined when it had not by then. */
  async close(patienceMs: number) {
    this.#isMeantToEnd = true;
    this.order({ do: 'close' });
    return Promise.race([this.exit, sleep(patienceMs, undefined, { ref: false })]);
  }

  sample(patienceMs: number): Promise<Sample | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), patienceMs);
      this.#onSample = (sample) => {
        clearTimeout(timer);
        this.samples.push({ incarnation: this.incarnation, sample });
        resolve(sample);
      };
      this.order({ do: 'sample' });
    });
  }

  /** In words, for a report of what went wrong. */
  explain(client: number): Promise<string> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve('nothing'), EXPLAIN_MS);
      this.#onExplained = (what) => {
        clearTimeout(timer);
        resolve(what);
      };
      this.order({ do: 'explain', client });
    });
  }

  async destroy(): Promise<void> {
    await this.kill();
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }

  /** Whether trouble of its own may have to do with what happened then. */
  wasTroubled(fromMs: number, untilMs: number): boolean {
    return overlaps(this.troubles, fromMs, untilMs);
  }

  wasAbsent(client: number, fromMs: number, untilMs: number): boolean {
    return overlaps(this.clients[client]?.absences ?? [], fromMs, untilMs);
  }

  #heard(report: Report): void {
    switch (report.is) {
      case 'connected':
        this.#of(report.client).connectedMs = report.atMs;
        return;
      case 'ready':
        this.isReady = true;
        return;
      case 'quiet':
        this.isQuiet = true;
        return;
      case 'asked':
        this.#asked(this.#of(report.client), report.value, report.atMs);
        return;
      case 'listing':
        this.#listener.heard(this, report.client, report);
        this.#of(report.client).last = report;
        return;
      case 'unsubscribed':
        this.#of(report.client).last = undefined;
        return;
      case 'sample':
        this.#onSample?.(report);
        return;
      case 'explained':
        this.#onExplained?.(report.what);
        return;
      case 'broken':
        this.#listener.broke(`${this.plan.name}: ${report.what}`);
    }
  }

  #of(client: number): ClientState {
    return this.clients[client] as ClientState;
  }

  #asked(state: ClientState, value: string | undefined, atMs: number): void {
    if (value === undefined) state.absences.push({ fromMs: atMs, untilMs: undefined });
    else {
      const absence = state.absences.at(-1);
      if (absence) absence.untilMs ??= atMs;
    }
    state.asked = value;
  }
}

export function overlaps(
  stretches: readonly (Stretch | { readonly fromMs: number; readonly untilMs: number | undefined })[],
  fromMs: number,
  untilMs: number,
): boolean {
  return stretches.some((it) => it.fromMs <= untilMs && (it.untilMs ?? Number.POSITIVE_INFINITY) >= fromMs);
}
