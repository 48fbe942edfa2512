/** The etcd that is measured against: one of our own, or one that is there. */
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Etcd3 } from 'etcd3';
import { etcdVersion, startEtcd } from '../test/support/etcd-process.ts';
import { cpuMsOf } from './process-cpu.ts';

export interface EtcdServer {
  readonly endpoint: string;
  /** Everything happens under it. */
  readonly namespace: string;
  readonly version: string;
  /** As far as it is known. */
  readonly fsync: boolean | undefined;
  /** CPU used so far; undefined where it cannot be known. */
  cpuMs(): number | undefined;
  /** Removes what was written. */
  close(): Promise<void>;
}

/** A folder in memory: etcd before 3.5 cannot be told not to wait for its disk. */
export const MEMORY = '/dev/shm';
const QUOTA_BYTES = 4 * 1024 ** 3;

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function namespace(): string {
  return `/bench-${process.pid}-${Date.now().toString(36)}`;
}

async function versionOf(endpoint: string): Promise<string> {
  const client = new Etcd3({ hosts: endpoint });
  try {
    return (await client.maintenance.status()).version;
  } finally {
    client.close();
  }
}

export class LeftBehindError extends Error {
  constructor(prefix: string, cause: unknown) {
    super(`etcdctl del --prefix ${prefix}/ removes what is left there of the benchmark`, { cause });
  }
}

/** So many keys at a time: one deletion of all of them would hold up whoever else uses that etcd. */
const REMOVED_AT_ONCE = 1_000;

async function remove(client: Etcd3, prefix: string): Promise<void> {
  const key = Buffer.from(prefix);
  // A prefix here ends in a slash, which comes before a zero.
  const end = Buffer.from(`${prefix.slice(0, -1)}0`);
  for (;;) {
    const { kvs } = await client.kv.range({ key, range_end: end, limit: REMOVED_AT_ONCE, keys_only: true });
    const last = kvs.at(-1);
    if (!last) return;
    await client.kv.deleteRange({ key, range_end: Buffer.concat([last.key, Buffer.from([0])]) });
  }
}

async function attach(endpoint: string): Promise<EtcdServer> {
  const prefix = namespace();
  return {
    endpoint,
    namespace: prefix,
    version: await versionOf(endpoint),
    fsync: undefined,
    cpuMs: () => undefined,
    close: async () => {
      const client = new Etcd3({ hosts: endpoint });
      try {
        await remove(client, `${prefix}/`);
      } catch (error) {
        throw new LeftBehindError(prefix, error);
      } finally {
        client.close();
      }
    },
  };
}

async function start(fsync: boolean): Promise<EtcdServer> {
  const knowsNoFsync = !etcdVersion().startsWith('3.4.');
  const inMemory = !fsync && isWritable(MEMORY);
  const folder = mkdtempSync(join(inMemory ? MEMORY : tmpdir(), 'etcd-bench-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const extraArgs = ['--quota-backend-bytes', String(QUOTA_BYTES)];
  // The last one counts.
  if (fsync && knowsNoFsync) extraArgs.push('--unsafe-no-fsync=false');
  const etcd = await startEtcd({ dataDir: join(folder, 'data'), extraArgs });
  return {
    endpoint: etcd.endpoint,
    namespace: namespace(),
    version: etcdVersion(),
    fsync: fsync || !(knowsNoFsync || inMemory),
    cpuMs: () => cpuMsOf([etcd.pid]),
    close: async () => {
      await etcd.destroy();
      remove();
    },
  };
}

export function openServer(endpoint: string | undefined, fsync: boolean): Promise<EtcdServer> {
  return endpoint === undefined ? start(fsync) : attach(endpoint);
}
