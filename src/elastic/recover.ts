import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf } from '../core/log.ts';
import { ClusterAdmin } from '../etcd/cluster-admin.ts';
import { DataFolder } from './data-folder.ts';
import { ClusterStateError, EtcdProcessError } from './errors.ts';
import { etcdEnvironment, findEtcd, findRestorer } from './etcd-binary.ts';
import { lockFolder } from './folder-lock.ts';
import { LocalServer } from './local-server.ts';
import { askMembers } from './membership.ts';
import type { ElasticConfig } from './options.ts';
import { StateFile } from './state-file.ts';

const run = promisify(execFile);

const CALL_TIMEOUT_MS = 1_000;
/** An etcd without a quorum opens its ports within this, or says why not. */
const START_MS = 15_000;

export interface RecoveryPlan {
  readonly raftIndex: number;
  /** What other members that still answer have; none is further than this one. */
  readonly others: readonly { readonly name: string; readonly raftIndex: number }[];
  /** Members of which nothing was heard: whatever they alone had is lost. */
  readonly silent: readonly string[];
}

/**
 * After most voters are lost for good: makes this host's member the only one, with all it has. The cluster keeps its id. `confirm` is
 * asked before anything is changed. The agent has to be stopped, and is started as ever afterwards.
 * @throws ClusterStateError when there is a quorum after all, when another member has more, or when it is not confirmed
 */
export async function recover(
  config: ElasticConfig,
  confirm: (plan: RecoveryPlan) => Promise<boolean>,
): Promise<RecoveryPlan> {
  const folder = new DataFolder(config.dataDir);
  const unlock = lockFolder(folder.lock);
  const admin = new ClusterAdmin({ credentials: config.credentials, auth: config.auth });
  try {
    const state = new StateFile(config.stateDir);
    if (!folder.hasLog || !state.current)
      throw new ClusterStateError(`${config.dataDir} holds no member’s data: recover on a host that has some`);
    const { members, clusterId, memberId } = state.current;
    const others = members.filter(({ id }) => id !== memberId);
    const urls = others.flatMap(({ clientUrls }) => clientUrls);
    const answer = await askMembers(admin, urls, clusterId);
    if (answer)
      throw new ClusterStateError(`${answer.url} has a quorum: nothing needs to be recovered; start this host as ever`);
    // Without a quorum an etcd that starts answers nobody, so what it has is known from when it last ran.
    const { raftIndex } = state.current;
    const statuses = await Promise.all(
      others.map(({ clientUrls }) => admin.status(clientUrls[0] ?? '', CALL_TIMEOUT_MS).catch(() => undefined)),
    );
    const heard = others.flatMap(({ name }, index) => {
      const status = statuses[index];
      return status ? [{ name, raftIndex: status.raftIndex }] : [];
    });
    const ahead = heard.find((other) => other.raftIndex > raftIndex);
    if (ahead)
      throw new ClusterStateError(
        `${ahead.name} has more (raft index ${ahead.raftIndex}, here ${raftIndex}): recover there`,
      );
    const silent = others
      .filter(({ name }) => !heard.some((one) => one.name === name))
      .map(({ name }) => name)
      .sort();
    const plan: RecoveryPlan = { raftIndex, others: heard, silent };
    if (!(await confirm(plan))) throw new ClusterStateError('not confirmed: nothing was changed');
    const status = await withServer(config, folder, admin, ['--force-new-cluster'], (server) =>
      server.ready(AbortSignal.timeout(START_MS)),
    );
    state.update({ memberId: status.memberId, members: members.filter(({ id }) => id === memberId), endpoints: [] });
    return plan;
  } finally {
    await admin.close();
    unlock();
  }
}

/** Makes a new cluster of this host from a snapshot. What lay here before is kept aside. */
export async function restore(config: ElasticConfig, snapshot: string): Promise<void> {
  if (!existsSync(snapshot)) throw new ClusterStateError(`there is no snapshot ${snapshot}`);
  const etcd = await findEtcd(config.etcdPath, process.env);
  const tool = findRestorer(etcd, process.env);
  const folder = new DataFolder(config.dataDir);
  const unlock = lockFolder(folder.lock);
  try {
    folder.archive('before-restore');
    const initialCluster = config.advertiseServerUrls.map((url) => `${config.hostname}=${url}`).join();
    const args = ['snapshot', 'restore', snapshot, '--data-dir', folder.etcd, '--name', config.hostname];
    args.push('--initial-cluster', initialCluster, '--initial-cluster-token', randomBytes(16).toString('hex'));
    args.push('--initial-advertise-peer-urls', config.advertiseServerUrls.join());
    await run(tool, args, { env: { ...etcdEnvironment(), ETCDCTL_API: '3' } });
    const state = new StateFile(config.stateDir);
    // It is another cluster from here on; the old one stays on record beside it.
    if (state.current) renameSync(state.path, `${state.path}.before-restore`);
  } catch (error) {
    throw error instanceof ClusterStateError
      ? error
      : new EtcdProcessError(`the snapshot could not be restored: ${messageOf(error)}`, { cause: error });
  } finally {
    unlock();
  }
}

async function withServer<T>(
  config: ElasticConfig,
  folder: DataFolder,
  admin: ClusterAdmin,
  extra: readonly string[],
  use: (server: LocalServer) => Promise<T>,
): Promise<T> {
  const etcd = await findEtcd(config.etcdPath, process.env);
  const tuning = { ...config.tuning, extraArgs: [...(config.tuning.extraArgs ?? []), ...extra] };
  const server = new LocalServer({ ...config, tuning }, etcd, folder, admin);
  if (!(await server.adopt())) await server.start();
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}
