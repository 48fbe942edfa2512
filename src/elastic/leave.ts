import { setTimeout as sleep } from 'node:timers/promises';
import { debugLog, messageOf } from '../core/log.ts';
import type { HostAgent } from './host-agent.ts';
import { askMembers } from './membership.ts';
import { KEYS } from './records.ts';

const log = debugLog('leave');

const LOOK_MS = 200;

/**
 * Leaves the cluster for good: says so, is removed by the controller, and puts its data aside. The word stays when this agent dies: the
 * controller then removes the member without it. The last member is never removed; it stops and keeps its data.
 */
export async function leaveCluster(agent: HostAgent, signal: AbortSignal): Promise<'left' | 'last'> {
  const { coordination, keeper, config } = agent;
  if (!coordination || !keeper || agent.holds === undefined) return 'left';
  const key = config.namespace + KEYS.leaving + config.hostname;
  const { connection } = coordination.shared;
  agent.waitsFor = 'the cluster to note that it leaves';
  await connection.txn({ compares: [], success: [{ type: 'put', key, value: agent.incarnation }] }, { signal });
  await keeper.unpublish();
  while (agent.holds !== undefined) {
    signal.throwIfAborted();
    if (await isLast(agent)) {
      await connection.txn({ compares: [], success: [{ type: 'delete', target: { key } }] }, { signal });
      return 'last';
    }
    agent.waitsFor = whatFor(agent);
    await sleep(LOOK_MS, undefined, { signal });
  }
  return 'left';
}

/** The only voter, and nobody there to take over: a learner without its agent cannot promote itself. */
async function isLast(agent: HostAgent): Promise<boolean> {
  const { coordination, config, holds } = agent;
  const keys = coordination?.keys;
  if (!coordination || !keys) return false;
  const others = keys.volunteers.filter(({ host }) => host !== config.hostname && !keys.leaving.includes(host));
  if (others.length > 0) return false;
  const answer = await askMembers(
    agent.admin,
    [coordination.shared.connection.store.endpoint],
    coordination.clusterId,
  ).catch((error: unknown) => void log('%s', messageOf(error)));
  const voters = answer?.members.filter((member) => !member.isLearner) ?? [];
  return voters.length === 1 && voters[0]?.id === holds;
}

function whatFor({ coordination, config }: HostAgent): string {
  const keys = coordination?.keys;
  const { change, plan } = keys ?? {};
  const own = change?.host === config.hostname && change.kind === 'remove';
  if (own && change.phase === 'open') return 'its member to be removed';
  if (own && change.phase === 'done') return 'its etcd to end';
  const reasons = (plan?.blocked ?? []).map(({ what, why }) => `${what}: ${why}`);
  return reasons.length > 0 ? `the controller (${reasons.join('; ')})` : 'the controller';
}
