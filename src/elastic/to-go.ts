import type { ElasticKeys } from './records.ts';

/** Whether clients are to leave this host's member: it was told to leave, is being removed, or will be next. Pure. */
export function isToGo(keys: ElasticKeys, host: string, memberId: string): boolean {
  const { change } = keys;
  const isNow = change?.kind === 'remove' && change.phase === 'open' && change.memberId === memberId;
  return isNow || keys.leaving.includes(host) || isSurplus(keys, host);
}

/** While the cluster shrinks, all that are too many leave the list at once: none of their removals need then wait for it. */
function isSurplus({ change, plan, idealSize }: ElasticKeys, host: string): boolean {
  if (change?.kind !== 'remove' || change.cause !== 'shrink' || !plan || plan.converged) return false;
  if (idealSize !== undefined && idealSize !== plan.idealSize) return false;
  const { voters, learners } = plan.wanted;
  return voters.length > 0 && !voters.includes(host) && !learners.includes(host);
}
