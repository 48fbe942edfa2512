/** Hosts of an elastic cluster for tests: each an `ephemeral elastic run` of its own, killed and brought back as machines are. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { statOf } from '../../src/elastic/folder-lock.ts';
import { ElasticRemote } from '../../src/elastic/remote.ts';
import type { ClusterStatus } from '../../src/elastic/status.ts';
import type { ClusterAdminOptions } from '../../src/etcd/cluster-admin.ts';
import { bindOrphan, bindToThisProcess, temporaryFolder } from './children.ts';
import { freePorts } from './ports.ts';
import { until } from './wait.ts';

const COMMAND = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** A change takes etcd 5 s a voter; several may follow one another. */
export const CHANGE_PATIENCE_MS = 120_000;

const LOOK_MS = 200;

/** As for the other tests, ETCD_BIN_DIR names the folder; ETCD_BIN, which is the product's own, goes before it. */
const { ETCD_BIN_DIR } = process.env;
const ETCD = process.env.ETCD_BIN ?? (ETCD_BIN_DIR === undefined ? 'etcd' : join(ETCD_BIN_DIR, 'etcd'));

/** Where a host is to be reached. */
export interface Place {
  readonly address: string;
  /** Default: http. */
  readonly scheme?: 'http' | 'https';
  /** For clients, and for members. */
  readonly ports: readonly number[];
  /** The command that its agent is run with, such as one that gives it a network of its own. */
  readonly within?: readonly string[];
}

export interface HostOptions {
  /** Flags beside those that every test host gets. */
  readonly flags?: readonly string[];
  /** Default: all other hosts there are. */
  readonly seeds?: readonly string[];
}

function pids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Whether it is there, and no zombie that only waits for its exit code to be asked for. */
function runs(pid: number): boolean {
  const [state] = statOf(pid);
  return state !== undefined && state !== 'Z';
}

const clusters = new Set<TestElastic>();
process.on('exit', () => {
  for (const cluster of clusters) cluster.killAll();
});

export class TestHost {
  readonly name: string;
  readonly clientUrl: string;
  readonly serverUrl: string;
  readonly dataDir: string;
  readonly stateDir: string;
  stdout = '';
  stderr = '';
  readonly #within: readonly string[];
  #agent: ChildProcess | undefined;

  constructor(name: string, folder: string, { address, scheme = 'http', ports, within = [] }: Place) {
    this.name = name;
    this.#within = within;
    this.clientUrl = `${scheme}://${address}:${ports[0]}`;
    this.serverUrl = `${scheme}://${address}:${ports[1]}`;
    this.dataDir = join(folder, name);
    this.stateDir = `${this.dataDir}.state`;
  }

  get isRunning(): boolean {
    return this.#agent !== undefined && this.#agent.exitCode === null && this.#agent.signalCode === null;
  }

  /** Of its etcd; undefined when there is none. */
  get etcdPid(): number | undefined {
    const pid = this.#notedPid();
    return pid !== undefined && runs(pid) ? pid : undefined;
  }

  #notedPid(): number | undefined {
    try {
      return (JSON.parse(readFileSync(join(this.stateDir, 'etcd.pid.json'), 'utf8')) as { pid: number }).pid;
    } catch {
      return undefined;
    }
  }

  start({ flags = [], seeds = [] }: HostOptions): void {
    const args = ['elastic', 'run', '--hostname', this.name, '--data-dir', this.dataDir];
    args.push('--client-urls', this.clientUrl, '--server-urls', this.serverUrl);
    if (seeds.length > 0) args.push('--seeds', seeds.join());
    const line = [...this.#within, process.execPath, '--import', 'tsx', COMMAND, ...args, ...flags];
    const child = spawn(line[0] ?? '', line.slice(1), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ETCD_BIN: ETCD },
    });
    bindToThisProcess(child);
    child.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.#agent = child;
  }

  async ready(): Promise<void> {
    await until(() => {
      if (!this.isRunning) throw new Error(`${this.name} has ended:\n${this.stderr}`);
      return this.stdout.includes('ready');
    }, `${this.name} to be ready`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#agent?.kill(signal);
  }

  /** Resolves with the exit code, or the signal. */
  async ended(): Promise<number | string> {
    const agent = this.#agent;
    if (!agent) return 0;
    if (agent.exitCode === null && agent.signalCode === null) await once(agent, 'exit');
    return agent.exitCode ?? agent.signalCode ?? 0;
  }

  async stop(): Promise<number | string> {
    this.signal('SIGTERM');
    return this.ended();
  }

  /** The agent alone; its etcd lives on. */
  async killAgent(): Promise<void> {
    const pid = this.etcdPid;
    if (pid !== undefined) bindOrphan(pid);
    this.signal('SIGKILL');
    await this.ended();
  }

  /** As when the machine loses its power: nothing of it is left when this resolves. */
  async crash(): Promise<void> {
    const pids = this.killNow();
    await this.ended();
    await until(() => !pids.some(runs), `nothing of ${this.name} to run`);
  }

  /** The agent is stopped first, so that it starts nothing meanwhile. Returns what was killed beside it. */
  killNow(): readonly number[] {
    this.signal('SIGSTOP');
    const noted = this.etcdPid;
    const pids = [...new Set([...(noted === undefined ? [] : [noted]), ...this.#children()])];
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    this.signal('SIGKILL');
    return pids;
  }

  /** What its agent has started, noted or not. */
  #children(): readonly number[] {
    const { pid } = this.#agent ?? {};
    if (!this.isRunning) return [];
    return pids().filter((one) => statOf(one)[1] === String(pid));
  }

  /** As when its disk was exchanged, the state's too or not. */
  wipe({ state = false }: { state?: boolean } = {}): void {
    rmSync(join(this.dataDir, 'etcd'), { recursive: true, force: true });
    if (state) rmSync(this.stateDir, { recursive: true, force: true });
  }
}

async function onFreePorts(): Promise<Place> {
  return { address: '127.0.0.1', ports: await freePorts(2) };
}

export class TestElastic {
  readonly hosts: TestHost[] = [];
  readonly #folder = temporaryFolder('elastic-test-');
  readonly #remotes: ElasticRemote[] = [];
  #count = 0;

  /** How the tests themselves come in, where not everybody may. */
  access: ClusterAdminOptions = {};
  readonly #place: (number: number) => Place | Promise<Place>;

  /** @param place where the nth host is to be; default: this machine, on free ports */
  constructor(place: (number: number) => Place | Promise<Place> = onFreePorts) {
    this.#place = place;
    clusters.add(this);
  }

  /** Starts one more host. The first one founds the cluster. */
  async add(options: HostOptions = {}): Promise<TestHost> {
    const host = await this.prepare();
    this.restart(host, options);
    return host;
  }

  /** One more host, with addresses of its own, that is not started yet. */
  async prepare(): Promise<TestHost> {
    this.#count += 1;
    const host = new TestHost(`h${this.#count}`, this.#folder, await this.#place(this.#count));
    this.hosts.push(host);
    return host;
  }

  restart(host: TestHost, { flags = [], seeds }: HostOptions = {}): void {
    host.stdout = '';
    const others = this.hosts.filter((other) => other !== host).map((other) => other.clientUrl);
    const isFirst = host === this.hosts[0];
    host.start({ flags: ['--dead-after', '3', ...flags], seeds: seeds ?? (isFirst ? [] : others) });
  }

  /** An etcd that tells its version and then does nothing, as on a disk that hangs. */
  etcdThatHangs(): { readonly path: string; reached(): boolean } {
    const path = join(this.#folder, 'hanging-etcd');
    const mark = `${path}.reached`;
    writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && exec ${ETCD} --version\n: > ${mark}\nexec sleep 1000\n`, {
      mode: 0o755,
    });
    return { path, reached: () => existsSync(mark) };
  }

  /** The cluster seen through any host that answers. */
  remote(): ElasticRemote {
    const endpoints = this.hosts.map((host) => host.clientUrl);
    const remote = new ElasticRemote({ endpoints, namespace: '/_elastic', ...this.access });
    this.#remotes.push(remote);
    return remote;
  }

  /** Waits until so many voters are all there is to wish for. */
  async settled(voters: number, what = ''): Promise<ClusterStatus> {
    const remote = this.remote();
    return until(
      async () => {
        const status = await remote.status();
        const count = status.rows.filter(({ role }) => role === 'voter').length;
        if (status.healthy && status.converged && count === voters) return status;
        // A look is a dozen calls: one after the other without a pause would be a load of its own.
        await sleep(LOOK_MS);
        throw new Error(JSON.stringify(status));
      },
      `${voters} voters ${what}`,
      CHANGE_PATIENCE_MS,
    );
  }

  killAll(): void {
    for (const host of this.hosts) host.killNow();
  }

  /** Kills what runs. Rejects when something of the cluster was left that no host knew of. */
  async destroy(): Promise<void> {
    for (const remote of this.#remotes) await remote.close();
    await Promise.all(this.hosts.map((host) => host.crash()));
    const orphans = this.#processes();
    for (const { pid } of orphans) process.kill(pid, 'SIGKILL');
    clusters.delete(this);
    rmSync(this.#folder, { recursive: true, force: true });
    if (orphans.length > 0) throw new Error(`left behind: ${orphans.map(({ command }) => command).join('; ')}`);
  }

  #processes(): readonly { readonly pid: number; readonly command: string }[] {
    return pids()
      .map((pid) => ({ pid, command: commandOf(pid) }))
      .filter(({ pid, command }) => command.includes(`${this.#folder}/`) && runs(pid));
  }
}
