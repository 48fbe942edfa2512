import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import { ClusterStateError } from './errors.ts';
import { toHex } from './ids.ts';
import type { View } from './observer.ts';

const CALL_TIMEOUT_MS = 10_000;

/**
 * After a NOSPACE alarm, and only then: drops history, gives the room back one member at a time, the leader last, then disarms. Writes
 * are refused until the end of it, so nobody is the worse for the pauses.
 */
export async function heal(
  admin: ClusterAdmin,
  { observed, statuses }: View,
  tell: (line: string) => void,
): Promise<void> {
  const leader = observed.members.find(({ id }) => id === observed.leader);
  const url = leader?.clientUrls[0];
  if (!observed.linearizable || url === undefined)
    throw new ClusterStateError('the cluster has no quorum: bring members back first');
  const alarms = await admin.alarms(url, CALL_TIMEOUT_MS);
  if (alarms.some(({ alarm }) => alarm === 'CORRUPT')) {
    throw new ClusterStateError(
      'a CORRUPT alarm is no matter of room: find the member that differs, and let it join anew without its data',
    );
  }
  if (alarms.length === 0) {
    tell('no member raises an alarm: there is nothing to heal, and nothing was changed');
    return;
  }
  const revision = (await admin.status(url, CALL_TIMEOUT_MS)).revision;
  await admin.compact(url, revision, CALL_TIMEOUT_MS).catch((error: unknown) => {
    if (!/has been compacted/.test(String(error))) throw error;
  });
  tell(`history before revision ${revision} dropped`);
  const members = [...observed.members].sort(
    (a, b) => Number(a.id === observed.leader) - Number(b.id === observed.leader),
  );
  for (const member of members) {
    const [memberUrl] = member.clientUrls;
    if (memberUrl === undefined || !statuses.has(member.id)) {
      tell(`${member.name || toHex(member.id)} does not answer and was left out`);
      continue;
    }
    const before = (await admin.status(memberUrl, CALL_TIMEOUT_MS)).dbSizeBytes;
    await admin.defragment(memberUrl);
    const after = (await admin.status(memberUrl, CALL_TIMEOUT_MS)).dbSizeBytes;
    tell(`${member.name}: ${before} bytes of database are now ${after}`);
  }
  for (const alarm of alarms) await admin.disarm(url, alarm, CALL_TIMEOUT_MS);
  tell('the alarm is disarmed');
}
