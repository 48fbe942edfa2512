/** Real etcd servers for tests: started, frozen, killed and brought back by pid, each in a folder of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bindToThisProcess, temporaryFolder } from './children.ts';
import { freePorts, ownsPort } from './ports.ts';
import { PATIENCE_MS, until } from './wait.ts';

export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  /** Clients must show a certificate that this CA signed. */
  readonly clientCa?: string;
}

export interface EtcdOptions {
  /** Where etcd and etcdctl are. Default: ETCD_BIN_DIR, else the PATH. */
  readonly binDir?: string;
  /** Default: a temporary folder, which goes with this process at the latest. */
  readonly dataDir?: string;
  readonly extraArgs?: readonly string[];
  /** Paths of PEM files; clients then come by https. */
  readonly tls?: ServerTls;
  readonly quotaBytes?: number;
  /** More loopback addresses to listen on, at the same port: clients of different addresses do not share a connection. */
  readonly extraAddresses?: readonly string[];
}

const LOG_TAIL_CHARS = 6_000;
const STOP_PATIENCE_MS = 10_000;
/** Another process may take a port between its choice and its use. */
const START_ATTEMPTS = 5;

function binary(name: string, binDir = process.env.ETCD_BIN_DIR): string {
  return binDir === undefined ? name : join(binDir, name);
}

export function etcdBinary(): string {
  return binary('etcd');
}

export function etcdctlBinary(binDir?: string): string {
  return binary('etcdctl', binDir);
}

const versions = new Map<string, string>();

/** Such as `3.4.23`. */
export function etcdVersion(binDir?: string): string {
  const path = binary('etcd', binDir);
  let version = versions.get(path);
  if (version === undefined) {
    const { stdout, error } = spawnSync(path, ['--version'], { encoding: 'utf8' });
    if (error)
      throw new Error(`cannot run ${path}: install etcd, or name its folder in ETCD_BIN_DIR`, { cause: error });
    version = /etcd Version: (\S+)/.exec(stdout)?.[1] ?? '';
    versions.set(path, version);
  }
  return version;
}

/** What of a member stays the same over its restarts. */
interface Member {
  readonly name: string;
  readonly dataDir: string;
  readonly clientPort: number;
  readonly peerPort: number;
  readonly metricsPort: number;
  readonly initialCluster: string;
}

export class EtcdProcess {
  readonly name: string;
  readonly dataDir: string;
  readonly clientPort: number;
  readonly endpoint: string;
  /** One for each address listened on. */
  readonly endpoints: readonly string[];
  /** The end of what it wrote to stdout and stderr. */
  log = '';
  #child: ChildProcess | undefined;

  readonly #member: Member;
  readonly #options: EtcdOptions;

  constructor(member: Member, options: EtcdOptions) {
    this.#member = member;
    this.#options = options;
    this.name = member.name;
    this.dataDir = member.dataDir;
    this.clientPort = member.clientPort;
    this.endpoints = ['127.0.0.1', ...(options.extraAddresses ?? [])].map((address) => this.#clientUrl(address));
    this.endpoint = this.#clientUrl('127.0.0.1');
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`etcd ${this.name} is not running`);
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** Starts it and resolves when it answers a linearizable read. */
  async start(): Promise<void> {
    this.spawn();
    await this.ready();
  }

  spawn(): void {
    if (this.#child !== undefined) throw new Error(`etcd ${this.name} is running already`);
    const child = spawn(binary('etcd', this.#options.binDir), this.#arguments(), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch },
    });
    this.#child = child;
    bindToThisProcess(child);
    const keepTail = (chunk: Buffer) => {
      this.log = (this.log + chunk.toString()).slice(-LOG_TAIL_CHARS);
    };
    child.stdout.on('data', keepTail);
    child.stderr.on('data', keepTail);
    child.once('error', (error) => {
      this.log += String(error);
    });
    child.once('close', () => {
      if (this.#child === child) this.#child = undefined;
    });
  }

  async ready(): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS;
    const url = `http://127.0.0.1:${this.#member.metricsPort}/health`;
    while (performance.now() < endMs) {
      if (this.#child === undefined) throw new Error(`etcd ${this.name} ended while starting:\n${this.log}`);
      const healthy = await until(() => fetch(url).then((r) => r.ok), 'health', 50).catch(() => false);
      if (healthy && this.#ownsItsPorts()) return;
    }
    throw new Error(`etcd ${this.name} is not ready after ${PATIENCE_MS / 1_000} s:\n${this.log}`);
  }

  /** SIGTERM, and SIGKILL when that does not help. */
  async stop(): Promise<void> {
    this.resume();
    await this.#end('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** It stands still when this returns: on a busy machine the signal alone may take a while to reach every thread. */
  pause(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    process.kill(pid, 'SIGSTOP');
    while (!isStopped(pid)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Stops it if it runs, and starts it on the same ports. With `wipe` it has forgotten everything. */
  async restart({ wipe = false }: { wipe?: boolean } = {}): Promise<void> {
    await this.stop();
    if (wipe) rmSync(this.dataDir, { recursive: true, force: true });
    await this.start();
  }

  /** Kills it and removes its folder. */
  async destroy(): Promise<void> {
    await this.kill();
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true });
  }

  #clientUrl(address: string): string {
    return `${this.#options.tls ? 'https' : 'http'}://${address}:${this.#member.clientPort}`;
  }

  #ownsItsPorts(): boolean {
    const { pid } = this;
    return ownsPort(pid, this.#member.clientPort) && ownsPort(pid, this.#member.metricsPort);
  }

  #arguments(): string[] {
    const { name, dataDir, peerPort, metricsPort, initialCluster } = this.#member;
    const { tls, quotaBytes, extraArgs = [] } = this.#options;
    const clientUrls = this.endpoints.join(',');
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    const args = ['--name', name, '--data-dir', dataDir, '--logger', 'zap', '--log-outputs', 'stderr'];
    args.push('--listen-client-urls', clientUrls, '--advertise-client-urls', this.endpoint);
    args.push('--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl);
    args.push('--listen-metrics-urls', `http://127.0.0.1:${metricsPort}`);
    args.push('--initial-cluster', initialCluster, '--initial-cluster-token', initialCluster);
    if (!etcdVersion(this.#options.binDir).startsWith('3.4.')) args.push('--unsafe-no-fsync');
    if (quotaBytes !== undefined) args.push('--quota-backend-bytes', String(quotaBytes));
    if (tls) {
      args.push('--cert-file', tls.cert, '--key-file', tls.key);
      if (tls.clientCa !== undefined) args.push('--client-cert-auth', '--trusted-ca-file', tls.clientCa);
    }
    return [...args, ...extraArgs];
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
    await closed;
    clearTimeout(timer);
  }
}

async function members(count: number, options: EtcdOptions): Promise<Member[]> {
  const ports = await freePorts(3 * count);
  const drafts = Array.from({ length: count }, (_, i) => ({
    name: `test-${process.pid}-${ports[3 * i]}`,
    dataDir: options.dataDir ?? join(temporaryFolder('etcd-test-'), 'data'),
    clientPort: ports[3 * i] as number,
    peerPort: ports[3 * i + 1] as number,
    metricsPort: ports[3 * i + 2] as number,
  }));
  const initialCluster = drafts.map(({ name, peerPort }) => `${name}=http://127.0.0.1:${peerPort}`).join(',');
  return drafts.map((draft) => ({ ...draft, initialCluster }));
}

async function startMembers(count: number, options: EtcdOptions): Promise<EtcdProcess[]> {
  for (let attempt = 1; ; attempt++) {
    const processes = (await members(count, options)).map((member) => new EtcdProcess(member, options));
    try {
      for (const etcd of processes) etcd.spawn();
      await Promise.all(processes.map((etcd) => etcd.ready()));
      return processes;
    } catch (error) {
      await Promise.all(processes.map((etcd) => etcd.destroy()));
      const portTaken = String(error).includes('address already in use');
      if (!portTaken || attempt === START_ATTEMPTS) throw error;
    }
  }
}

/** A cluster of one. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdProcess> {
  const [etcd] = await startMembers(1, options);
  return etcd as EtcdProcess;
}

export interface EtcdCluster {
  readonly members: readonly EtcdProcess[];
  readonly endpoints: readonly string[];
  /** The member that all running members take for the leader. */
  leader(): Promise<EtcdProcess>;
  destroy(): Promise<void>;
}

interface StatusAnswer {
  readonly header: { readonly member_id: string };
  readonly leader?: string;
}

async function status(etcd: EtcdProcess): Promise<StatusAnswer> {
  const response = await fetch(`${etcd.endpoint}/v3/maintenance/status`, {
    method: 'POST',
    body: '{}',
    signal: AbortSignal.timeout(2_000),
  });
  return (await response.json()) as StatusAnswer;
}

/** A cluster of `count` members (without TLS between clients and members). */
export async function startCluster(
  count: number,
  options: Omit<EtcdOptions, 'dataDir' | 'tls'> = {},
): Promise<EtcdCluster> {
  const processes = await startMembers(count, options);
  return {
    members: processes,
    endpoints: processes.map((etcd) => etcd.endpoint),
    leader: () =>
      until(async () => {
        const running = processes.filter((etcd) => etcd.running);
        const answers = await Promise.all(running.map(status));
        const leaderId = answers[0]?.leader;
        if (!leaderId || answers.some((answer) => answer.leader !== leaderId)) return undefined;
        return running[answers.findIndex((answer) => answer.header.member_id === leaderId)];
      }, 'a leader'),
    destroy: async () => {
      await Promise.all(processes.map((etcd) => etcd.destroy()));
    },
  };
}

/** Of Linux: the state stands behind the name, which may hold anything. Elsewhere the signal must do. */
function isStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  try {
    return readdirSync(tasks).every((task) => {
      const stat = readFileSync(`${tasks}/${task}/stat`, 'utf8');
      return /^[TtZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
    });
  } catch {
    // A thread that ended between the two: look again while there is a process.
    return !existsSync(tasks);
  }
}
