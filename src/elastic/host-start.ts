import { randomBytes } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { InvalidOptionError } from '../core/errors.ts';
import { debugLog, messageOf } from '../core/log.ts';
import { type ClusterAdmin, type EndpointStatus, isForVotersOnly } from '../etcd/cluster-admin.ts';
import { Coordination, wrongCluster } from './coordination.ts';
import type { DataFolder } from './data-folder.ts';
import type { EndpointBook } from './endpoint-book.ts';
import { ClusterStateError, EtcdProcessError } from './errors.ts';
import { toHex } from './ids.ts';
import type { LocalServer } from './local-server.ts';
import { askMembers } from './membership.ts';
import { type ElasticConfig, mayBootstrapUnasked } from './options.ts';
import { portsFault } from './ports-proof.ts';
import { KEYS } from './records.ts';
import { decideStart } from './start-decision.ts';
import type { StateFile } from './state-file.ts';
import { sameUrls } from './view.ts';

const log = debugLog('start');

const PEEK_TIMEOUT_MS = 1_000;

export interface StartParts {
  readonly config: ElasticConfig;
  readonly admin: ClusterAdmin;
  readonly incarnation: string;
  /** Undefined on a host that is a client only. */
  readonly server: LocalServer | undefined;
  readonly folder: DataFolder;
  readonly state: StateFile;
  readonly book: EndpointBook;
  /** Hears what it waits for, for the message of a deadline. */
  onWait(what: string): void;
}

/** How a host comes to its cluster: as the member it was, as the founder, or as a client who knows where to ask. */
export class HostStart {
  /** It came back as a member, and nobody with a quorum was there to be asked. */
  afterOutage = false;
  readonly #parts: StartParts;
  readonly #advised = new Set<string>();

  constructor(parts: StartParts) {
    this.#parts = parts;
  }

  /** As its data, its memory and its options say: an etcd runs afterwards, or none is to run yet. */
  async serve(signal: AbortSignal): Promise<void> {
    const { config, server, folder, state } = this.#parts;
    const isAdopted = (await server?.adopt()) === true;
    if (server && !isAdopted) {
      const fault = await portsFault([...config.clientUrls, ...config.serverUrls]);
      if (fault !== undefined) throw new InvalidOptionError(`clientUrls and serverUrls: ${fault}`);
    }
    const decision = decideStart({
      noServer: config.noServer,
      hasLog: folder.hasLog,
      remembers: state.current !== undefined,
      wasMember: state.current?.memberId !== undefined,
      hasEndpoints: this.#parts.book.all().length > 0,
      hasSeeds: config.seeds.length > 0,
      bootstrap: config.bootstrap,
      isLocal: mayBootstrapUnasked(config),
    });
    if (decision.start === 'refuse') throw new ClusterStateError(decision.why);
    if (decision.start === 'restart') await this.#restart(isAdopted, signal);
    else if (decision.start === 'bootstrap') await this.#bootstrap(signal);
    else if (decision.start === 'ask-then-bootstrap' && !(await this.#findCluster())) await this.#bootstrap(signal);
  }

  /** As the member it was. If it was removed meanwhile, as a volunteer like any other. */
  async #restart(isAdopted: boolean, signal: AbortSignal): Promise<void> {
    const { server } = this.#parts;
    if (!server) return;
    if (!isAdopted) {
      if (await this.#returnsInVain()) return;
      await server.start();
    }
    this.#parts.onWait('its etcd and the members it had');
    let status: EndpointStatus;
    try {
      status = await server.ready(signal);
    } catch (error) {
      if (!(error instanceof EtcdProcessError) || !(await this.#returnsInVain())) throw error;
      return;
    }
    const { clusterId, memberId } = status;
    const pinned = this.#parts.state.current;
    if (pinned && pinned.clusterId !== clusterId)
      throw wrongCluster(this.#parts.config.dataDir, clusterId, pinned.clusterId);
    this.pin(clusterId, memberId);
    if (status.isLearner) return;
    this.#parts.book.prefer(server.url);
    await this.#correctUrls(server.url, memberId);
  }

  /** Where no other member could be told before it started, it tells its own: who joins later learns its URLs from there. */
  async #correctUrls(url: string, memberId: string): Promise<void> {
    const { admin, config } = this.#parts;
    const { members } = await admin.memberList(url, PEEK_TIMEOUT_MS);
    const known = members.find(({ id }) => id === memberId)?.peerUrls ?? [];
    if (sameUrls(known, config.advertiseServerUrls)) return;
    await this.#moveTo(url, memberId);
  }

  async #moveTo(url: string, memberId: string): Promise<void> {
    const { admin, config } = this.#parts;
    config.logger.info(`this host’s server URLs are now ${config.advertiseServerUrls.join()}`);
    await admin.updatePeerUrls(url, memberId, config.advertiseServerUrls, PEEK_TIMEOUT_MS);
  }

  /** Asks the others, if any answers: whether this member was removed, or is known under other URLs. */
  async #returnsInVain(): Promise<boolean> {
    const pinned = this.#parts.state.current;
    if (pinned?.memberId === undefined) return false;
    const answer = await askMembers(this.#parts.admin, this.#parts.book.all(), pinned.clusterId);
    this.afterOutage = !answer;
    if (!answer) return false;
    const member = answer.members.find((one) => one.id === pinned.memberId);
    if (member && sameUrls(member.peerUrls, this.#parts.config.advertiseServerUrls)) return false;
    if (member && !member.isLearner) {
      await this.#moveTo(answer.url, member.id);
      return false;
    }
    this.#parts.config.logger.warn(
      `member ${toHex(pinned.memberId)} ${member ? 'has moved' : 'was removed'}: its data is kept aside`,
    );
    this.#parts.folder.archive(pinned.memberId);
    this.#parts.state.update({ memberId: undefined, initialCluster: undefined });
    return true;
  }

  async #bootstrap(signal: AbortSignal): Promise<void> {
    const { config, server } = this.#parts;
    if (!server) return;
    this.#parts.onWait('its etcd');
    config.logger.warn(`founding a NEW cluster with ${config.hostname} as its only member`);
    this.#parts.folder.clear();
    const initialCluster = config.advertiseServerUrls.map((url) => `${config.hostname}=${url}`).join();
    await server.start({ initialCluster, state: 'new', token: randomBytes(16).toString('hex') });
    const { clusterId, memberId } = await server.ready(signal);
    this.pin(clusterId, memberId);
    this.#parts.book.prefer(server.url);
  }

  /** Whether any seed knows a cluster. */
  async #findCluster(): Promise<boolean> {
    this.#parts.onWait('an answer of its seeds');
    const answers = await Promise.all(this.#parts.book.all().map((url) => this.#peek(url)));
    return answers.includes(true);
  }

  /** Learns where to go from a member that may be a learner, which answers nothing but what it knows by itself. */
  async #peek(url: string): Promise<boolean> {
    try {
      const prefix = this.#parts.config.namespace + KEYS.endpoints;
      const { clusterId, kvs } = await this.#parts.admin.peek(url, prefix, PEEK_TIMEOUT_MS);
      const pinned = this.#parts.state.current?.clusterId;
      if (pinned !== undefined && pinned !== clusterId) return false;
      this.#parts.book.publish(kvs.flatMap(({ value }) => Buffer.from(value).toString().split(',').filter(Boolean)));
      return true;
    } catch (error) {
      log('seed %s: %s', url, messageOf(error));
      if (this.#parts.config.auth && isForVotersOnly(error)) this.#adviseAgainst(url);
      return false;
    }
  }

  /** Passwords are checked by voters: with them a learner tells nobody anything, and nothing else can be got out of it. */
  #adviseAgainst(url: string): void {
    if (this.#advised.has(url)) return;
    this.#advised.add(url);
    this.#parts.config.logger.warn(
      `${url} is a learner, which lets nobody log in: name a voter among the seeds, or log in by client certificates`,
    );
  }

  /** Resolves once a member of the cluster answers, and refuses another cluster than the one it remembers. */
  async connect(clock: Clock, signal: AbortSignal): Promise<Coordination> {
    const { config, server, state, book, onWait } = this.#parts;
    onWait(`an answer of ${book.all().join(', ') || 'its etcd'}`);
    const pinned = state.current?.clusterId;
    if (!server?.isRunning) await this.#findCluster();
    const asking = setInterval(() => void this.#findCluster(), 2 * PEEK_TIMEOUT_MS);
    try {
      const forever = Number.POSITIVE_INFINITY;
      return await Coordination.open(config, book, clock, pinned, forever, signal);
    } finally {
      clearInterval(asking);
    }
  }

  /** Holds this host to the cluster from now on. */
  pin(clusterId: string, memberId: string | undefined): void {
    const before = this.#parts.state.current;
    const fresh = { endpoints: [], members: [], raftIndex: 0, incarnation: this.#parts.incarnation };
    this.#parts.state.write({ ...fresh, ...before, host: this.#parts.config.hostname, clusterId, memberId });
  }
}
