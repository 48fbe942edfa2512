import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Listeners } from '../core/listeners.ts';
import { debugLog, messageOf } from '../core/log.ts';
import type { ClusterAdmin, EndpointStatus } from '../etcd/cluster-admin.ts';
import type { DataFolder } from './data-folder.ts';
import { ClusterStateError, EtcdProcessError } from './errors.ts';
import { type Beginning, etcdArguments } from './etcd-arguments.ts';
import type { EtcdBinary } from './etcd-binary.ts';
import { type EtcdExit, type EtcdIdentity, EtcdProcess } from './etcd-process.ts';
import type { ElasticConfig } from './options.ts';
import { asEtcdTakesIt, isLoopback } from './urls.ts';

const log = debugLog('server');

const POLL_MS = 20;
const STATUS_TIMEOUT_MS = 500;

interface PidRecord extends EtcdIdentity {
  /** An orphan that was started otherwise than it would be now is not adopted. */
  readonly args: readonly string[];
}

/** The etcd of this host: started, adopted, watched, stopped. */
export class LocalServer {
  /** It has ended without having been told to. */
  readonly ended = new Listeners<[exit: EtcdExit]>();
  readonly url: string;
  readonly #config: ElasticConfig;
  readonly #binary: EtcdBinary;
  readonly #folder: DataFolder;
  readonly #admin: ClusterAdmin;
  readonly #pidFile: string;
  readonly #logFile: string;
  #process: EtcdProcess | undefined;
  #isStopping = false;

  constructor(config: ElasticConfig, binary: EtcdBinary, folder: DataFolder, admin: ClusterAdmin) {
    this.#config = config;
    this.#binary = binary;
    this.#folder = folder;
    this.#admin = admin;
    this.#pidFile = join(config.stateDir, 'etcd.pid.json');
    this.#logFile = join(config.stateDir, 'etcd.log');
    // A certificate is made out to the advertised name.
    const local = config.credentials ? undefined : config.clientUrls.find(isLoopback);
    this.url = local ?? config.advertiseClientUrls[0] ?? '';
  }

  get isRunning(): boolean {
    return this.#process?.isRunning === true;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.#process?.identity.pid : undefined;
  }

  /** How the last one ended; `undefined` while it runs, or when there was none. */
  get exit(): EtcdExit | undefined {
    return this.#process?.exit;
  }

  tail(): string {
    return this.#process?.tail() ?? '';
  }

  /** Starts it; without a beginning, as the member whose log lies in the folder. */
  async start(beginning?: Beginning): Promise<void> {
    // Told nothing, etcd would found a cluster of its own.
    if (!beginning && !this.#folder.hasLog) throw new ClusterStateError(`${this.#folder.etcd} holds no member’s data`);
    await this.#admin.forget(this.url);
    const note = (identity: EtcdIdentity) => {
      const record: PidRecord = { ...identity, args: this.#arguments(undefined) };
      writeFileSync(this.#pidFile, JSON.stringify(record), { mode: 0o600 });
    };
    // Sockets are made in the folder that etcd runs in.
    const folder = this.#config.noNetwork ? this.#folder.path : undefined;
    const args = this.#arguments(beginning);
    this.#watch(await EtcdProcess.spawn(this.#binary.path, args, this.#logFile, folder, note));
  }

  /** Takes over the etcd that a killed agent left behind, if there is one. Another one on the folder could only wait for it. */
  async adopt(): Promise<boolean> {
    const record = this.#readPid();
    const orphan = record && EtcdProcess.adopt(record, this.#logFile);
    if (!record || !orphan) return false;
    if (JSON.stringify(record.args) !== JSON.stringify(this.#arguments(undefined))) {
      log('the orphan runs with other arguments and is stopped');
      await orphan.stop();
      return false;
    }
    this.#config.logger.info(`took over etcd ${record.pid}, whose agent had died`);
    this.#watch(orphan);
    return true;
  }

  /** Resolves with its status once it is part of its cluster: it knows a leader, and unless it is a learner a quorum. */
  async ready(signal: AbortSignal): Promise<EndpointStatus> {
    for (;;) {
      signal.throwIfAborted();
      if (!this.isRunning) throw this.failure(this.#process?.exit);
      const status = await this.status();
      if (status && status.leader !== '0' && (status.isLearner || (await this.hasQuorum()))) return status;
      await sleep(POLL_MS);
    }
  }

  async status(): Promise<EndpointStatus | undefined> {
    try {
      return await this.#admin.status(this.url, STATUS_TIMEOUT_MS);
    } catch (error) {
      log('%s: %s', this.url, messageOf(error));
      return undefined;
    }
  }

  async hasQuorum(): Promise<boolean> {
    try {
      await this.#admin.proveQuorum(this.url, STATUS_TIMEOUT_MS);
      return true;
    } catch {
      return false;
    }
  }

  failure(exit: EtcdExit | undefined): EtcdProcessError {
    return new EtcdProcessError(`etcd did not start (${exit?.text ?? 'it ended'}); it last wrote:\n${this.tail()}`);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#process?.stop();
    this.#forgetPid();
  }

  /** For a member that was removed: lets it end by itself first. */
  async endAfterRemoval(): Promise<void> {
    this.#isStopping = true;
    await this.#process?.endAfterRemoval();
    this.#forgetPid();
    this.#isStopping = false;
  }

  async kill(): Promise<void> {
    this.#isStopping = true;
    await this.#process?.kill();
    this.#forgetPid();
  }

  #watch(process: EtcdProcess): void {
    this.#process = process;
    void process.exited.then((exit) => {
      if (this.#process !== process || this.#isStopping) return;
      this.#forgetPid();
      this.ended.call(exit);
    });
  }

  #arguments(beginning: Beginning | undefined): string[] {
    const { hostname, clientUrls, advertiseClientUrls, serverUrls, advertiseServerUrls, tls, tuning } = this.#config;
    const urls = {
      clientUrls: clientUrls.map(asEtcdTakesIt),
      advertiseClientUrls: advertiseClientUrls.map(asEtcdTakesIt),
      serverUrls,
      advertiseServerUrls,
    };
    return etcdArguments({ name: hostname, dataDir: this.#folder.etcd, ...urls, tls, tuning }, beginning);
  }

  #readPid(): PidRecord | undefined {
    try {
      return JSON.parse(readFileSync(this.#pidFile, 'utf8')) as PidRecord;
    } catch {
      return undefined;
    }
  }

  #forgetPid(): void {
    rmSync(this.#pidFile, { force: true });
  }
}
