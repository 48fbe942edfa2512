import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../core/clock.ts';
import { ConnectionError } from '../core/errors.ts';
import { messageOf } from '../core/log.ts';
import { ClusterAdmin, type ClusterAdminOptions, isForVotersOnly } from '../etcd/cluster-admin.ts';
import { takeBackup } from './backup.ts';
import { dynamicSize } from './chooser.ts';
import { ClusterStateError, ElasticTimeoutError } from './errors.ts';
import type { Plan, Policy } from './model.ts';
import { Observer, type View } from './observer.ts';
import { checkSize } from './options.ts';
import { plan as makePlan } from './plan.ts';
import { KEYS } from './records.ts';
import { sourceFromAny } from './source.ts';
import { type ClusterStatus, makeStatus } from './status.ts';
import { viewMembers } from './view.ts';

export interface RemoteOptions extends ClusterAdminOptions {
  readonly endpoints: readonly string[];
  readonly namespace: string;
}

const CALL_TIMEOUT_MS = 2_000;
const POLL_MS = 200;
/** An election takes about 2 s: a look may fall into one. */
const LEADER_PATIENCE_MS = 3_000;

/** A cluster as seen from any shell: looks, and writes what its controller then acts upon. */
export class ElasticRemote {
  readonly admin: ClusterAdmin;
  readonly #options: RemoteOptions;
  readonly #clock = systemClock();
  readonly #observer: Observer;
  /** A look cannot know for how long a member has been silent: what does not answer is shown as it is, and not judged dead. */
  readonly #policy: Policy = { chooser: dynamicSize, minVoters: 3, deadAfterMs: Number.POSITIVE_INFINITY };

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.admin = new ClusterAdmin({ ...options, voters: () => options.endpoints });
    const source = sourceFromAny(this.admin, options.endpoints, options.namespace);
    this.#observer = new Observer(source, this.admin, this.#clock, undefined, () => {});
  }

  /** @throws ConnectionError, which says what can be done, when no member answers */
  async look(): Promise<{ readonly view: View; readonly plan: Plan }> {
    const view = await this.#observer.look().catch((error: unknown) => {
      throw error instanceof ConnectionError && error.retryable ? unanswered(this.#options.endpoints, error) : error;
    });
    return { view, plan: makePlan(this.#policy, view.observed, undefined) };
  }

  async status(): Promise<ClusterStatus> {
    const { view, plan } = await this.look();
    const members = viewMembers(this.#policy, view.observed, plan.memory);
    return makeStatus(view, members, plan, await this.#leaseAges(view));
  }

  /** Resolves when all hosts see nothing left to do. @throws ElasticTimeoutError, which says what is missing */
  async wait(timeoutMs: number, signal: AbortSignal): Promise<void> {
    const endMs = this.#clock.now() + timeoutMs;
    for (;;) {
      const status = await this.status().catch((error: unknown) => error as Error);
      if (!(status instanceof Error) && status.converged && status.quorum) return;
      if (this.#clock.now() >= endMs)
        throw new ElasticTimeoutError(`not as wanted within ${timeoutMs / 1_000} s: ${missing(status)}`);
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async resize(size: number): Promise<void> {
    checkSize(size);
    await this.#put(KEYS.idealSize, String(size));
  }

  /** How many hosts there are to serve, each with an agent or a member. */
  async hostCount(): Promise<number> {
    const { volunteers, members, leaving } = (await this.look()).view.observed;
    const hosts = new Set([...volunteers.map(({ host }) => host), ...members.map(({ name }) => name)]);
    return [...hosts].filter((host) => host !== '' && !leaving.includes(host)).length;
  }

  /** Tells a host to leave for good, whether or not its agent lives, and waits until its member is gone. */
  async leave(host: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { view, plan } = await this.look();
    const member = view.observed.members.find(({ name }) => name === host);
    const volunteers = view.observed.volunteers.some((volunteer) => volunteer.host === host);
    if (!member && !volunteers) throw new ClusterStateError(`there is no host ${host} in the cluster`);
    const voters = view.observed.members.filter(({ isLearner }) => !isLearner);
    const others = plan.wanted.voters.filter((one) => one !== host).length + plan.wanted.learners.length;
    if (member && !member.isLearner && voters.length === 1 && others === 0) {
      throw new ClusterStateError(`${host} is the last member: it can be stopped, and keeps its data`);
    }
    await this.#put(KEYS.leaving + host, 'told');
    const endMs = this.#clock.now() + timeoutMs;
    for (;;) {
      const { observed } = (await this.look()).view;
      if (!observed.leaving.includes(host) && !observed.members.some(({ name }) => name === host)) return;
      if (this.#clock.now() >= endMs) {
        const why = (await this.status()).blocked.map(({ what, why }) => `${what}: ${why}`).join('; ');
        throw new ElasticTimeoutError(
          `${host} was told to leave and has not left within ${timeoutMs / 1_000} s: ${why || 'no controller acts'}`,
        );
      }
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async backUp(folder: string): Promise<string> {
    return takeBackup(this.admin, await this.leaderUrl(), folder, new Date());
  }

  async leaderUrl(): Promise<string> {
    // By time, not by looks: where members are dead, each look takes seconds.
    const untilMs = performance.now() + LEADER_PATIENCE_MS;
    do {
      const { observed } = (await this.look()).view;
      const url = observed.members.find(({ id }) => id === observed.leader)?.clientUrls[0];
      if (url !== undefined) return url;
      await sleep(POLL_MS);
    } while (performance.now() < untilMs);
    throw new ClusterStateError('the cluster has no leader now: see ephemeral elastic status');
  }

  async close(): Promise<void> {
    await this.admin.close();
  }

  async #leaseAges({ keys, observed }: View): Promise<ReadonlyMap<string, number>> {
    if (!observed.linearizable) return new Map();
    const url = await this.leaderUrl().catch(() => undefined);
    if (url === undefined) return new Map();
    const ages = await Promise.all(
      [...keys.leases].map(async ([host, lease]) => {
        const time = await this.admin.leaseTime(url, lease, CALL_TIMEOUT_MS).catch(() => undefined);
        return time ? [[host, time.grantedS - time.leftS] as const] : [];
      }),
    );
    return new Map(ages.flat());
  }

  /** At the first member that takes it, each asked twice: an election may pass. Put again after a lost answer, it says the same. */
  async #put(key: string, value: string): Promise<void> {
    let failure: unknown;
    const { endpoints, namespace } = this.#options;
    for (const url of [...endpoints, ...endpoints]) {
      try {
        await this.admin.put(url, namespace + key, value, CALL_TIMEOUT_MS);
        return;
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
        failure = error;
      }
    }
    throw new ClusterStateError(
      `no member would take it (the last said: ${messageOf(failure)}): ephemeral elastic status says what is wrong`,
      { cause: failure },
    );
  }
}

function unanswered(endpoints: readonly string[], cause: ConnectionError): ConnectionError {
  const advice = isForVotersOnly(cause)
    ? 'a learner knows no more than its own state: name a voter, by --endpoints'
    : 'start the hosts with ephemeral elastic run, or name others by --endpoints; if most members are lost for good: ' +
      'ephemeral elastic recover, on a host that has its data still';
  return new ConnectionError(`no member answers at ${endpoints.join(', ')} (${cause.message}): ${advice}`, { cause });
}

function missing(status: ClusterStatus | Error): string {
  if (status instanceof Error) return status.message;
  const reasons = status.blocked.map(({ what, why }) => `${what}: ${why}`);
  if (reasons.length > 0) return reasons.join('; ');
  return status.quorum ? 'hosts have yet to report; see ephemeral elastic status' : 'the cluster has no quorum';
}
