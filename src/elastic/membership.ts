import { debugLog, messageOf } from '../core/log.ts';
import type { ClusterAdmin, ListedMember } from '../etcd/cluster-admin.ts';
import { wrongCluster } from './coordination.ts';

const log = debugLog('membership');

const CALL_TIMEOUT_MS = 1_000;

/** The members as a quorum knows them, from the first of these that has one behind it; `undefined` where none does. */
export async function askMembers(
  admin: ClusterAdmin,
  urls: readonly string[],
  clusterId: string,
): Promise<{ readonly url: string; readonly members: readonly ListedMember[] } | undefined> {
  for (const url of urls) {
    try {
      // A minority lists members as well, from what it last knew.
      await admin.proveQuorum(url, CALL_TIMEOUT_MS);
      const list = await admin.memberList(url, CALL_TIMEOUT_MS);
      if (list.clusterId !== clusterId) throw wrongCluster(url, list.clusterId, clusterId);
      return { url, members: list.members };
    } catch (error) {
      log('%s: %s', url, messageOf(error));
    }
  }
  return undefined;
}

/** Whether a member is one still. Where nobody can be asked, that is not known, and it was not removed. */
export async function askMembership(
  admin: ClusterAdmin,
  urls: readonly string[],
  clusterId: string,
  memberId: string,
): Promise<'member' | 'removed' | 'unknown'> {
  const answer = await askMembers(admin, urls, clusterId);
  if (!answer) return 'unknown';
  return answer.members.some((member) => member.id === memberId) ? 'member' : 'removed';
}
