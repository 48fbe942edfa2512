import { setTimeout as sleep } from 'node:timers/promises';
import { startEtcd } from './etcd.ts';
import { deletePrefix, etcdVersion } from './http-api.ts';
import { aborted, type Parent } from './parent.ts';
import { type KeeperReport, type KeeperTask, TTL } from './tasks.ts';

/** Those who die with the demo have stopped writing by then, and their leases are gone. */
const ORPHANED_MS = (TTL + 1) * 1_000;
const ATTEMPTS = 5;
const RETRY_MS = 500;

/**
 * Holds what has to be cleared away in the end, whatever happens to the demo: an etcd of its own with its folder, or in somebody
 * else's etcd all keys of the demo's namespace. A process apart, because only one that outlives the demo can do it after a SIGKILL.
 */
export async function keeper(task: KeeperTask, parent: Parent<KeeperReport>): Promise<void> {
  const { endpoints, namespace } = task;
  if (endpoints) await keepNamespace(endpoints, `${namespace}/`, parent);
  else await keepEtcd(parent);
}

async function keepEtcd(parent: Parent<KeeperReport>): Promise<void> {
  const etcd = await startEtcd(AbortSignal.any([parent.stopped, parent.gone]));
  try {
    const version = await etcdVersion(etcd.endpoint);
    parent.ready(() => ({ endpoints: [etcd.endpoint], etcdVersion: version, etcdPid: etcd.pid }));
    await Promise.race([aborted(parent.stopped), aborted(parent.gone), etcd.died]);
  } finally {
    await etcd.destroy();
  }
}

async function keepNamespace(
  endpoints: readonly string[],
  prefix: string,
  parent: Parent<KeeperReport>,
): Promise<void> {
  const version = await firstThatAnswers(endpoints, etcdVersion);
  // Shows at once whether we may delete there; nothing is there yet.
  await firstThatAnswers(endpoints, (endpoint) => deletePrefix(endpoint, prefix));
  parent.ready(() => ({ endpoints, etcdVersion: version, etcdPid: undefined }));
  await Promise.race([aborted(parent.stopped), aborted(parent.gone)]);
  if (!parent.stopped.aborted) await sleep(ORPHANED_MS);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await firstThatAnswers(endpoints, (endpoint) => deletePrefix(endpoint, prefix));
      return;
    } catch (error) {
      if (attempt < ATTEMPTS) await sleep(RETRY_MS);
      else throw new Error(`the keys under ${prefix} could not be deleted: ${(error as Error).message}`);
    }
  }
}

async function firstThatAnswers<T>(endpoints: readonly string[], ask: (endpoint: string) => Promise<T>): Promise<T> {
  let failure: unknown = new Error('no endpoint is given: set ETCD_ENDPOINTS to one, or unset it');
  for (const endpoint of endpoints) {
    try {
      return await ask(endpoint);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
