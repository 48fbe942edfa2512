import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { abortable } from '../core/abortable.ts';
import { systemClock } from '../core/clock.ts';
import { PathExistsError } from '../core/errors.ts';
import { Listeners } from '../core/listeners.ts';
import { messageOf } from '../core/log.ts';
import { ClusterAdmin, type EndpointStatus } from '../etcd/cluster-admin.ts';
import { takeBackup } from './backup.ts';
import { ControllerLoop } from './controller-loop.ts';
import type { Coordination } from './coordination.ts';
import { DataFolder } from './data-folder.ts';
import { EndpointBook } from './endpoint-book.ts';
import { ClusterStateError, DuplicateHostError, ElasticTimeoutError } from './errors.ts';
import { type EtcdBinary, findEtcd } from './etcd-binary.ts';
import { lockFolder } from './folder-lock.ts';
import { HostStart } from './host-start.ts';
import { LocalServer } from './local-server.ts';
import { MemberKeeper } from './member-keeper.ts';
import { Observer, type View } from './observer.ts';
import type { ElasticConfig } from './options.ts';
import { KEYS } from './records.ts';
import { sourceThrough } from './source.ts';
import { StateFile } from './state-file.ts';

const STATUS_PATIENCE_MS = 1_000;
const NOTE_MS = 10_000;

/** Everything that runs on a host for its cluster, started and stopped in order. */
export class HostAgent {
  readonly changed = new Listeners<[]>();
  /** It cannot go on. */
  readonly failed = new Listeners<[error: Error]>();
  readonly config: ElasticConfig;
  readonly admin: ClusterAdmin;
  readonly incarnation = randomBytes(8).toString('hex');
  waitsFor = 'its data folder';
  coordination: Coordination | undefined;
  keeper: MemberKeeper | undefined;
  controller: ControllerLoop | undefined;
  server: LocalServer | undefined;
  readonly #folder: DataFolder;
  readonly #unlock: () => void;
  readonly #state: StateFile;
  readonly #book: EndpointBook;
  readonly #clock = systemClock();
  readonly #closing = new AbortController();
  #binary: EtcdBinary | undefined;
  #closed: Promise<void> | undefined;
  #hasStarted = false;
  #noting: NodeJS.Timeout | undefined;

  /** Takes the folder. @throws FolderInUseError */
  constructor(config: ElasticConfig) {
    this.config = config;
    this.#folder = new DataFolder(config.dataDir);
    this.#unlock = lockFolder(this.#folder.lock);
    try {
      this.#state = new StateFile(config.stateDir);
    } catch (error) {
      this.#unlock();
      throw error;
    }
    const own = new Set([...config.advertiseClientUrls, ...config.clientUrls]);
    const known = [...(this.#state.current?.endpoints ?? []), ...config.seeds];
    this.#book = new EndpointBook(known.filter((url) => !own.has(url)));
    this.admin = new ClusterAdmin({
      credentials: config.credentials,
      auth: config.auth,
      voters: () => this.#book.all(),
    });
  }

  get holds(): string | undefined {
    return this.#state.current?.memberId;
  }

  get state(): StateFile {
    return this.#state;
  }

  /** Resolves when the host is usable: connected, offered as a volunteer, and serving if it was to serve at once. */
  async start(signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const { config } = this;
    if (!config.noServer) this.#binary = await findEtcd(config.etcdPath, process.env);
    const hasData = !config.noServer && this.#folder.hasLog;
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(this.#timeout()), hasData ? 2 ** 31 - 1 : config.startTimeoutMs);
    try {
      await abortable(
        this.#begin(AbortSignal.any([either, deadline.signal])),
        AbortSignal.any([either, deadline.signal]),
      );
      this.#hasStarted = true;
    } finally {
      clearTimeout(timer);
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { config, admin, incarnation } = this;
    if (this.#binary) this.server = new LocalServer(config, this.#binary, this.#folder, admin);
    const start = new HostStart({
      config,
      admin,
      incarnation,
      server: this.server,
      folder: this.#folder,
      state: this.#state,
      book: this.#book,
      onWait: (what) => {
        this.waitsFor = what;
      },
    });
    await start.serve(signal);
    const coordination = await start.connect(this.#clock, signal);
    this.coordination = coordination;
    coordination.strayed.add((error) => this.failed.call(error));
    coordination.changed.add(() => this.#remember());
    start.pin(coordination.clusterId, this.holds);
    await this.#takePart(start.afterOutage, signal);
  }

  async #takePart(afterOutage: boolean, signal: AbortSignal): Promise<void> {
    const { coordination, config, server } = this;
    if (!coordination) return;
    await this.#storeSize(coordination);
    if (!server || !this.#binary) return;
    this.waitsFor = `the name ${config.hostname} in the cluster`;
    // Its member's data is gone: it says so, and the controller lets the member go.
    if (!this.#folder.hasLog && !server.isRunning)
      this.#state.update({ memberId: undefined, initialCluster: undefined });
    await this.#succeed(coordination);
    const keeper = new MemberKeeper({
      config,
      coordination,
      server,
      folder: this.#folder,
      state: this.#state,
      admin: this.admin,
      book: this.#book,
      incarnation: this.incarnation,
      etcdVersion: this.#binary.version,
      afterOutage,
      onChange: () => this.changed.call(),
    });
    this.keeper = keeper;
    try {
      await abortable(keeper.volunteer(), signal);
    } catch (error) {
      if (!(error instanceof PathExistsError)) throw error;
      throw new DuplicateHostError(
        `a host named ${config.hostname} is in the cluster, and alive: choose another hostname`,
      );
    }
    const warn = (message: string) => config.logger.warn(message);
    const source = sourceThrough(coordination.shared, this.admin, config.namespace);
    const observer = new Observer(source, this.admin, this.#clock, config.idealClusterSize, warn);
    this.controller = new ControllerLoop(coordination, this.admin, observer, config, (view) => this.#backUp(view));
    this.#noting = setInterval(() => void this.#noteProgress(), NOTE_MS);
    this.changed.call();
  }

  /** How far its log has come: what a recovery compares, when no etcd answers any more. */
  async #noteProgress(): Promise<void> {
    const status = await this.#lastStatus();
    if (status) this.#state.update({ raftIndex: status.raftIndex });
  }

  /** A size given here counts where none is stored. */
  async #storeSize({ shared }: Coordination): Promise<void> {
    const { idealClusterSize, namespace } = this.config;
    if (idealClusterSize === undefined) return;
    const key = namespace + KEYS.idealSize;
    await shared.connection.txn({
      compares: [{ target: { key }, field: 'create', op: '=', operand: 0 }],
      success: [{ type: 'put', key, value: String(idealClusterSize) }],
    });
  }

  /** The agent before this one is dead, since this one holds the folder's lock: what it registered need not be waited for. */
  async #succeed({ shared }: Coordination): Promise<void> {
    const { namespace, hostname } = this.config;
    const former = this.#state.current?.incarnation;
    const key = namespace + KEYS.volunteer + hostname;
    const { kvs } = await shared.connection.range({ type: 'range', target: { key } });
    const [kv] = kvs;
    if (kv && former !== undefined && Buffer.from(kv.value).toString().includes(`"${former}"`)) {
      const others = [KEYS.endpoints, KEYS.converged].map((part) => namespace + part + hostname);
      await shared.connection.txn({
        compares: [{ target: { key }, field: 'mod', op: '=', operand: kv.modRevision }],
        success: [key, ...others].map((one) => ({ type: 'delete', target: { key: one } }) as const),
      });
    }
    this.#state.update({ incarnation: this.incarnation });
  }

  async #backUp({ observed }: View): Promise<void> {
    const url = observed.members.find((member) => member.id === observed.leader)?.clientUrls[0];
    if (url === undefined) return;
    try {
      await takeBackup(this.admin, url, join(this.config.stateDir, 'backups'), new Date());
    } catch (error) {
      // A full disk here must not keep the cluster from replacing a dead member.
      this.config.logger.warn(`no backup before the change: ${messageOf(error)}`);
    }
  }

  /** For a start when nothing published can be read, and for recovery when nothing can be read at all. */
  #remember(): void {
    this.changed.call();
    const keys = this.coordination?.keys;
    if (!keys || keys.endpoints.size === 0) return;
    const endpoints = [...new Set([...keys.endpoints.values()].flat())].sort();
    const members = keys.volunteers.flatMap(({ host, holds, peerUrls, clientUrls }) =>
      holds === undefined ? [] : [{ name: host, id: holds, peerUrls, clientUrls }],
    );
    this.#state.update({ endpoints, members });
  }

  #timeout(): ElasticTimeoutError {
    const seconds = this.config.startTimeoutMs / 1_000;
    return new ElasticTimeoutError(`the host did not start within ${seconds} s: it still waits for ${this.waitsFor}`);
  }

  /** Ends everything; etcd last, since the others need it to give back what they hold. */
  close(etcd: 'stop' | 'kill' = 'stop'): Promise<void> {
    this.#closed ??= this.#close(etcd);
    return this.#closed;
  }

  async #close(etcd: 'stop' | 'kill'): Promise<void> {
    this.#closing.abort(new ClusterStateError('the host was stopped'));
    clearInterval(this.#noting);
    await this.#noteProgress();
    this.keeper?.close();
    // The lease that is revoked below gives the seat back too.
    void this.controller?.close();
    await this.coordination?.close();
    await (etcd === 'kill' ? this.server?.kill() : this.server?.stop());
    await this.admin.close();
    if (existsSync(this.#folder.path)) this.#unlock();
    if (this.#hasStarted) return;
    this.#folder.discardUnused();
    this.#state.discardUnused();
  }

  async #lastStatus(): Promise<EndpointStatus | undefined> {
    if (!this.server?.isRunning) return undefined;
    return abortable(this.server.status(), AbortSignal.timeout(STATUS_PATIENCE_MS)).catch(() => undefined);
  }
}
