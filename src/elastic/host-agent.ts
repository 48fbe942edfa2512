import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { abortable } from '../core/abortable.ts';
import { systemClock } from '../core/clock.ts';
import { InvalidOptionError, PathExistsError } from '../core/errors.ts';
import { Listeners } from '../core/listeners.ts';
import { debugLog, messageOf } from '../core/log.ts';
import { ClusterAdmin, type EndpointStatus } from '../etcd/cluster-admin.ts';
import { takeBackup } from './backup.ts';
import { ControllerLoop } from './controller-loop.ts';
import { Coordination, wrongCluster } from './coordination.ts';
import { DataFolder } from './data-folder.ts';
import { EndpointBook } from './endpoint-book.ts';
import { ClusterStateError, DuplicateHostError, ElasticTimeoutError, EtcdProcessError } from './errors.ts';
import { type EtcdBinary, findEtcd } from './etcd-binary.ts';
import { lockFolder } from './folder-lock.ts';
import { keysThrough } from './key-source.ts';
import { LocalServer } from './local-server.ts';
import { MemberKeeper } from './member-keeper.ts';
import { askMembers } from './membership.ts';
import { Observer, type View } from './observer.ts';
import { type ElasticConfig, mayBootstrapUnasked } from './options.ts';
import { portsFault } from './ports-proof.ts';
import { KEYS } from './records.ts';
import { decideStart } from './start-decision.ts';
import { StateFile } from './state-file.ts';

const log = debugLog('agent');

const PEEK_TIMEOUT_MS = 1_000;
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
    this.admin = new ClusterAdmin({ credentials: config.credentials, auth: config.auth });
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
    } finally {
      clearTimeout(timer);
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { config } = this;
    if (this.#binary) this.server = new LocalServer(config, this.#binary, this.#folder, this.admin);
    const isAdopted = (await this.server?.adopt()) === true;
    if (this.server && !isAdopted) {
      const fault = await portsFault([...config.clientUrls, ...config.serverUrls]);
      if (fault !== undefined) throw new InvalidOptionError(`clientUrls and serverUrls: ${fault}`);
    }
    const decision = decideStart({
      noServer: config.noServer,
      hasLog: this.#folder.hasLog,
      remembers: this.#state.current !== undefined,
      wasMember: this.#state.current?.memberId !== undefined,
      hasEndpoints: this.#book.all().length > 0,
      hasSeeds: config.seeds.length > 0,
      bootstrap: config.bootstrap,
      isLocal: mayBootstrapUnasked(config),
    });
    if (decision.start === 'refuse') throw new ClusterStateError(decision.why);
    if (decision.start === 'restart') await this.#restart(isAdopted, signal);
    else if (decision.start === 'bootstrap') await this.#bootstrap(signal);
    else if (decision.start === 'ask-then-bootstrap' && !(await this.#findCluster())) await this.#bootstrap(signal);
    await this.#connect(signal);
    await this.#takePart(signal);
  }

  /** As the member it was. If it was removed meanwhile, as a volunteer like any other. */
  async #restart(isAdopted: boolean, signal: AbortSignal): Promise<void> {
    const { server } = this;
    if (!server) return;
    if (!isAdopted) {
      if (await this.#returnsInVain()) return;
      await server.start();
    }
    this.waitsFor = 'its etcd and the members it had';
    let status: EndpointStatus;
    try {
      status = await server.ready(signal);
    } catch (error) {
      if (!(error instanceof EtcdProcessError) || !(await this.#returnsInVain())) throw error;
      return;
    }
    const { clusterId, memberId } = status;
    const pinned = this.#state.current;
    if (pinned && pinned.clusterId !== clusterId) throw wrongCluster(this.config.dataDir, clusterId, pinned.clusterId);
    this.#pin(clusterId, memberId);
    if (!status.isLearner) this.#book.prefer(server.url);
  }

  /** Asks the others, if any answers: whether this member was removed, or is known under other URLs. */
  async #returnsInVain(): Promise<boolean> {
    const pinned = this.#state.current;
    if (pinned?.memberId === undefined) return false;
    const answer = await askMembers(this.admin, this.#book.all(), pinned.clusterId);
    if (!answer) return false;
    const member = answer.members.find((one) => one.id === pinned.memberId);
    const urls = this.config.advertiseServerUrls;
    if (member && [...member.peerUrls].sort().join() === [...urls].sort().join()) return false;
    if (member && !member.isLearner) {
      this.config.logger.info(`this host’s server URLs are now ${urls.join()}`);
      await this.admin.updatePeerUrls(answer.url, member.id, urls, PEEK_TIMEOUT_MS);
      return false;
    }
    this.config.logger.warn(
      `member ${pinned.memberId} ${member ? 'has moved' : 'was removed'}: its data is kept aside`,
    );
    this.#folder.archive(pinned.memberId);
    this.#state.update({ memberId: undefined, initialCluster: undefined });
    return true;
  }

  async #bootstrap(signal: AbortSignal): Promise<void> {
    const { config, server } = this;
    if (!server) return;
    this.waitsFor = 'its etcd';
    config.logger.warn(`founding a NEW cluster with ${config.hostname} as its only member`);
    this.#folder.clear();
    const initialCluster = config.advertiseServerUrls.map((url) => `${config.hostname}=${url}`).join();
    await server.start({ initialCluster, state: 'new', token: randomBytes(16).toString('hex') });
    const { clusterId, memberId } = await server.ready(signal);
    this.#pin(clusterId, memberId);
    this.#book.prefer(server.url);
  }

  /** Whether any seed knows a cluster. */
  async #findCluster(): Promise<boolean> {
    this.waitsFor = 'an answer of its seeds';
    const answers = await Promise.all(this.#book.all().map((url) => this.#peek(url)));
    return answers.includes(true);
  }

  /** Learns where to go from a member that may be a learner, which answers nothing but what it knows by itself. */
  async #peek(url: string): Promise<boolean> {
    try {
      const prefix = this.config.namespace + KEYS.endpoints;
      const { clusterId, kvs } = await this.admin.peek(url, prefix, PEEK_TIMEOUT_MS);
      const pinned = this.#state.current?.clusterId;
      if (pinned !== undefined && pinned !== clusterId) return false;
      this.#book.publish(kvs.flatMap(({ value }) => Buffer.from(value).toString().split(',').filter(Boolean)));
      return true;
    } catch (error) {
      log('seed %s: %s', url, messageOf(error));
      return false;
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    this.waitsFor = `an answer of ${this.#book.all().join(', ') || 'its etcd'}`;
    const pinned = this.#state.current?.clusterId;
    if (!this.server?.isRunning) await this.#findCluster();
    const asking = setInterval(() => void this.#findCluster(), 2 * PEEK_TIMEOUT_MS);
    try {
      const forever = Number.POSITIVE_INFINITY;
      this.coordination = await Coordination.open(this.config, this.#book, this.#clock, pinned, forever, signal);
    } finally {
      clearInterval(asking);
    }
    this.coordination.strayed.add((error) => this.failed.call(error));
    this.coordination.changed.add(() => this.#remember());
    this.#pin(this.coordination.clusterId, this.#state.current?.memberId);
  }

  async #takePart(signal: AbortSignal): Promise<void> {
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
    const source = keysThrough(coordination.shared, config.namespace);
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

  #pin(clusterId: string, memberId: string | undefined): void {
    const before = this.#state.current;
    const fresh = { endpoints: [], members: [], raftIndex: 0, incarnation: this.incarnation };
    this.#state.write({ ...fresh, ...before, host: this.config.hostname, clusterId, memberId });
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
  }

  async #lastStatus(): Promise<EndpointStatus | undefined> {
    if (!this.server?.isRunning) return undefined;
    return abortable(this.server.status(), AbortSignal.timeout(STATUS_PATIENCE_MS)).catch(() => undefined);
  }
}
