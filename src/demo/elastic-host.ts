import { rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ElasticCluster, type HostStatus } from '../elastic.ts';
import { aborted, type Parent } from './parent.ts';
import type { HostTask } from './tasks.ts';

/** Seconds. Shorter than anyone should have it: the demo is to show a replacement, not to wait for it. */
const DEAD_AFTER = 3;
const FIRST_SIZE = 3;

/** One host. When the demo asks it to end, or is gone, it takes its etcd and its folders with it. */
export async function host({ name, clientUrl, serverUrl, seeds, folder }: HostTask, parent: Parent<HostStatus>) {
  const { ETCD_BIN_DIR } = process.env;
  const dataDir = join(folder, name);
  const cluster = new ElasticCluster({
    hostname: name,
    clientUrls: [clientUrl],
    serverUrls: [serverUrl],
    seeds: seeds.length > 0 ? seeds : undefined,
    dataDir,
    idealClusterSize: FIRST_SIZE,
    deadAfter: DEAD_AFTER,
    etcdPath: ETCD_BIN_DIR ? join(ETCD_BIN_DIR, 'etcd') : undefined,
    signal: AbortSignal.any([parent.stopped, parent.gone]),
  });
  parent.onGrow = (to) => void cluster.setIdealClusterSize(to).catch((error: unknown) => parent.fail(error));
  let newest: HostStatus | undefined;
  try {
    await cluster.start();
    cluster.status$.subscribe((status) => {
      if (newest === undefined) parent.ready(() => newest ?? status);
      newest = status;
      parent.report();
    });
    await Promise.race([aborted(parent.stopped), aborted(parent.gone), failing(cluster)]);
  } finally {
    await cluster.stop();
    for (const path of [dataDir, `${dataDir}.state`]) rmSync(path, { recursive: true, force: true });
    removeIfEmpty(folder);
  }
}

async function failing(cluster: ElasticCluster): Promise<void> {
  const { reason, error } = await cluster.exited;
  if (reason === 'failed') throw error ?? new Error('the host ended unexpectedly');
}

/** The last one does it, for the case that the demo itself was killed. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Others are still in it, or it is gone.
  }
}
