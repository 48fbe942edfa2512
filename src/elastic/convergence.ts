import { debugLog, messageOf } from '../core/log.ts';
import type { Registration } from '../ephemeral/api.ts';
import type { Coordination } from './coordination.ts';
import { type ElasticKeys, KEYS } from './records.ts';

const log = debugLog('convergence');

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
  const settled = new Set(keys.converged);
  return keys.volunteers.every(({ host }) => settled.has(host));
}

/** This host's own word on it, in the cluster's keys. */
export class ConvergenceFlag {
  readonly #coordination: Coordination;
  readonly #host: string;
  #flag: Registration | undefined;

  constructor(coordination: Coordination, host: string) {
    this.#coordination = coordination;
    this.#host = host;
  }

  async set(settled: boolean): Promise<void> {
    if (settled === (this.#flag !== undefined)) return;
    const former = this.#flag;
    this.#flag = undefined;
    try {
      if (former) await former.remove();
      else this.#flag = await this.#coordination.own.addKey(KEYS.converged + this.#host, 'true', { wait: false });
    } catch (error) {
      log('%s', messageOf(error));
    }
  }
}
