import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostStatus } from '../elastic.ts';
import { DemoProcess } from './demo-process.ts';
import { freePort } from './etcd.ts';
import type { Note, ProcessState, Step, Tone } from './facts.ts';
import { Waiting } from './waiting.ts';

const LEAVE_PATIENCE_MS = 15_000;

interface Host {
  readonly name: string;
  readonly clientUrl: string;
  readonly process: DemoProcess<'host'>;
  state: ProcessState;
  role: HostStatus['role'] | undefined;
}

export interface HostFacts {
  readonly name: string;
  readonly pid: number;
  readonly process: ProcessState;
  /** The newest that it told. */
  readonly status: HostStatus | undefined;
}

export interface ElasticFacts {
  readonly elapsedMs: number;
  readonly step: Step | undefined;
  readonly hosts: readonly HostFacts[];
  readonly notes: readonly Note[];
}

export interface ElasticStageOptions {
  /** Ends all waiting. */
  readonly signal: AbortSignal;
  /** A host has ended that should not have. */
  onBroken(error: Error): void;
  onNote(note: Note): void;
}

/** The hosts, and what they tell. */
export class ElasticStage {
  readonly waiting: Waiting;
  readonly #options: ElasticStageOptions;
  readonly #startedMs = performance.now();
  readonly #folder = mkdtempSync(join(tmpdir(), 'ephemeral-demo-'));
  readonly #hosts: Host[] = [];
  readonly #notes: Note[] = [];
  #step: Step | undefined;
  #isEnding = false;

  constructor(options: ElasticStageOptions) {
    this.#options = options;
    this.waiting = new Waiting(options.signal);
  }

  facts(): ElasticFacts {
    const hosts = this.#hosts.map(({ name, process, state }) => ({
      name,
      pid: process.pid,
      process: state,
      status: process.report,
    }));
    return { elapsedMs: performance.now() - this.#startedMs, step: this.#step, hosts, notes: this.#notes };
  }

  enter(step: Step): void {
    this.#step = step;
  }

  note(text: string, tone: Tone = 'plain'): void {
    const note = { atMs: performance.now() - this.#startedMs, text, tone };
    this.#notes.push(note);
    this.#options.onNote(note);
  }

  /** Resolves when the host is usable; whether it is nominated is another matter. */
  async start(name: string): Promise<void> {
    const [clientPort, serverPort] = [await freePort(), await freePort()];
    this.#options.signal.throwIfAborted();
    const clientUrl = `http://127.0.0.1:${clientPort}`;
    const task = {
      role: 'host',
      name,
      clientUrl,
      serverUrl: `http://127.0.0.1:${serverPort}`,
      seeds: this.#up.map((host) => host.clientUrl),
      folder: this.#folder,
    } as const;
    const host: Host = {
      name,
      clientUrl,
      state: 'starting',
      role: undefined,
      process: new DemoProcess(task, {
        onReport: (report) => this.#reported(host, report),
        onExit: () => this.#exited(host),
      }),
    };
    this.#hosts.push(host);
    await this.waiting.settled(host.process.ready);
    host.state = 'up';
    this.note(`${name} runs (pid ${host.process.pid}, ${clientUrl})`);
  }

  /** Its etcd and its agent at once, as when the machine loses its power. */
  async crash(name: string): Promise<void> {
    const host = this.#hosts.find((one) => one.name === name);
    if (!host) throw new Error(`there is no host ${name}`);
    host.state = 'killed';
    // Frozen first: it must not see its etcd die.
    host.process.kill('SIGSTOP');
    this.#kill(host);
    await host.process.exited;
    this.note(`SIGKILL for ${name} and its etcd`, 'bad');
    this.#clear(host);
  }

  resize(voters: number): void {
    this.#up[0]?.process.growTo(voters);
    this.note(`the ideal size is ${voters} now`, 'notice');
  }

  /** Resolves when there are so many voters and no host sees anything left to do. Milliseconds. */
  async settled(voters: number): Promise<number> {
    const fromMs = performance.now();
    await this.waiting.until(() => {
      const reports = this.#up.map(({ process }) => process.report);
      const isSettled = reports.every((report) => report?.converged) && this.voters.length === voters;
      return isSettled || undefined;
    }, `${voters} voters`);
    return performance.now() - fromMs;
  }

  get voters(): readonly string[] {
    return this.#up.filter(({ process }) => process.report?.role === 'voter').map(({ name }) => name);
  }

  get controller(): string | undefined {
    return this.#up.find(({ process }) => process.report?.isController)?.name;
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    for (const host of this.#up) host.state = 'draining';
    await Promise.all(this.#hosts.map((host) => host.process.end(LEAVE_PATIENCE_MS)));
    for (const host of this.#hosts) if (host.state === 'draining') this.#killEtcd(host);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #up(): Host[] {
    return this.#hosts.filter(({ state }) => state === 'up');
  }

  #reported(host: Host, { role }: HostStatus): void {
    const isNews = role !== host.role && (host.role !== undefined || role !== 'client');
    if (isNews && !this.#isEnding) {
      this.note(`${host.name} is a ${role}${role === 'client' ? ' again' : ''}`, role === 'voter' ? 'good' : 'notice');
    }
    host.role = role;
    this.waiting.changed();
  }

  #exited(host: Host): void {
    if (host.state === 'draining') host.state = 'down';
    if (this.#isEnding || host.state === 'killed') return;
    this.#options.onBroken(new Error(host.process.failure ?? `${host.name} ended unexpectedly`));
  }

  #kill(host: Host): void {
    this.#killEtcd(host);
    host.process.kill('SIGKILL');
  }

  /** It is in a process group of its own, and outlives an agent that was killed. */
  #killEtcd({ process: { report } }: Host): void {
    if (report?.serverPid === undefined) return;
    try {
      process.kill(report.serverPid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }

  #clear({ name }: Host): void {
    for (const folder of [name, `${name}.state`]) rmSync(join(this.#folder, folder), { recursive: true, force: true });
  }
}
