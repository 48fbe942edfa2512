import { debugLog, messageOf } from '../core/log.ts';
import type { Registration } from '../ephemeral/api.ts';
import type { Coordination } from './coordination.ts';
import { type ElasticKeys, KEYS } from './records.ts';

const log = debugLog('convergence');

/** How long a word that is void may stand. */
const VOID_MS = 1_000;

/** Whether the controller says that what is wanted, and wanted still, is there. */
function isFulfilled({ plan, leaving, idealSize }: ElasticKeys): boolean {
  return plan?.converged === true && leaving.length === 0 && (idealSize === undefined || idealSize === plan.idealSize);
}

/** Whether a host, given what it is, sees nothing left to do. Pure. */
export function isSettled(keys: ElasticKeys, host: string, role: 'client' | 'learner' | 'voter'): boolean {
  const { plan } = keys;
  if (!plan || !isFulfilled(keys)) return false;
  const wanted = plan.wanted.voters.includes(host)
    ? 'voter'
    : plan.wanted.learners.includes(host)
      ? 'learner'
      : 'client';
  return wanted === role;
}

/** Whether all hosts see nothing left to do, and a controller says that what is wanted is there. Pure. */
export function hasConverged(keys: ElasticKeys): boolean {
  const { plan } = keys;
  if (!plan || !isFulfilled(keys)) return false;
  return keys.volunteers.every(({ host }) => keys.converged.get(host) === plan.generation);
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

  set(settled: boolean, keys: ElasticKeys | undefined): void {
    // Under a plan that is fulfilled the word would count still.
    if (settled || (keys && isFulfilled(keys))) this.#want(settled ? String(keys?.plan?.generation) : undefined);
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
