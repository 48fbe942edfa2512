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
const MEMORY = '/dev/shm';
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
      await client.delete().prefix(`${prefix}/`);
      client.close();
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
