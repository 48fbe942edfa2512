import { debugLog, messageOf } from '../core/log.ts';
import type { Registration } from '../ephemeral/api.ts';
import type { Coordination } from './coordination.ts';
import { type ElasticKeys, KEYS, type PublishedPlan } from './records.ts';

const log = debugLog('convergence');

/** How long a word that is void may stand. */
const VOID_MS = 1_000;

/** Whether a host, given what it is, sees nothing left to do. Pure. */
export function isSettled(keys: ElasticKeys, host: string, role: 'client' | 'learner' | 'voter'): boolean {
  const { plan } = keys;
  if (!plan?.converged || keys.leaving.length > 0) return false;
  if (keys.idealSize !== undefined && keys.idealSize !== plan.idealSize) return false;
  const wanted = plan.wanted.voters.includes(host)
    ? 'voter'
    : plan.wanted.learners.includes(host)
      ? 'learner'
      : 'client';
  return wanted === role;
}

/** Whether all hosts see nothing left to do, and a controller says that what is wanted is there. Pure. */
export function hasConverged(keys: ElasticKeys): boolean {
  if (!keys.plan?.converged || keys.leaving.length > 0) return false;
  if (keys.idealSize !== undefined && keys.idealSize !== keys.plan.idealSize) return false;
  const { generation } = keys.plan;
  return keys.volunteers.every(({ host }) => keys.converged.get(host) === generation);
}

/**
 * This host's own word on it, in the cluster's keys: the generation of the plan that it is as wanted by. A change makes another
 * generation, and the word is void: so nobody need take it back in the moment when all have better things to do.
 */
export class ConvergenceFlag {
  readonly #coordination: Coordination;
  readonly #host: string;
  #wanted: string | undefined;
  #said: string | undefined;
  #flag: Registration | undefined;
  #isBusy = false;
  #voiding: NodeJS.Timeout | undefined;

  constructor(coordination: Coordination, host: string) {
    this.#coordination = coordination;
    this.#host = host;
  }

  set(settled: boolean, plan: PublishedPlan | undefined): void {
    // Under a plan that calls itself fulfilled the word would count still.
    if (settled || plan?.converged) this.#want(settled ? String(plan?.generation) : undefined);
    else if (this.#wanted !== undefined) this.#voiding ??= setTimeout(() => this.#want(undefined), VOID_MS);
  }

  close(): void {
    clearTimeout(this.#voiding);
  }

  #want(generation: string | undefined): void {
    clearTimeout(this.#voiding);
    this.#voiding = undefined;
    this.#wanted = generation;
    if (!this.#isBusy) void this.#say();
  }

  async #say(): Promise<void> {
    this.#isBusy = true;
    try {
      while (this.#said !== this.#wanted) {
        const wanted = this.#wanted;
        this.#flag = await this.#register(wanted);
        this.#said = wanted;
      }
    } catch (error) {
      log('%s', messageOf(error));
    } finally {
      this.#isBusy = false;
    }
  }

  async #register(generation: string | undefined): Promise<Registration | undefined> {
    const flag = this.#flag;
    if (generation === undefined) {
      await flag?.remove();
      return undefined;
    }
    if (!flag) return this.#coordination.own.addKey(KEYS.converged + this.#host, generation, { wait: false });
    await flag.update(generation);
    return flag;
  }
}
