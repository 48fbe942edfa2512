import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import type { Coordination } from './coordination.ts';
import type { EndpointBook } from './endpoint-book.ts';
import type { EtcdExit } from './etcd-process.ts';
import type { LocalServer } from './local-server.ts';
import { askMembership } from './membership.ts';
import type { ElasticConfig } from './options.ts';
import type { StateFile } from './state-file.ts';

/**
 * Whether an etcd's end may mean that its member was removed. One that was killed for the first time is started again unasked: without a
 * leader nobody could tell for seconds, and a member that was removed is told so by the others and ends as such.
 */
export function mayHaveBeenRemoved({ reason }: EtcdExit, isFirst: boolean): boolean {
  return !isFirst || (reason !== 'killed' && reason !== 'panic');
}

export interface OwnMember {
  readonly config: ElasticConfig;
  readonly coordination: Coordination;
  readonly server: LocalServer;
  readonly state: StateFile;
  readonly admin: ClusterAdmin;
  readonly book: EndpointBook;
}

/** Asks all others that are known. */
export async function wasRemoved({ config, coordination, server, state, admin, book }: OwnMember): Promise<boolean> {
  const others = book.all().filter((url) => url !== server.url && !config.advertiseClientUrls.includes(url));
  const memberId = state.current?.memberId ?? '';
  return (await askMembership(admin, others, coordination.clusterId, memberId)) === 'removed';
}
