import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../core/log.ts';
import { EtcdProcessError } from './errors.ts';
import { versionFault } from './version.ts';

const run = promisify(execFile);

export interface EtcdBinary {
  readonly path: string;
  readonly version: string;
}

/**
 * The etcd to run: the option, else ETCD_BIN, else the PATH.
 * @throws EtcdProcessError when there is none, or one that does not serve here
 */
export async function findEtcd(option: string | undefined, env: NodeJS.ProcessEnv): Promise<EtcdBinary> {
  const named = option ?? (env.ETCD_BIN || undefined);
  const path = named?.includes('/') ? resolve(named) : (named ?? onPath('etcd', env));
  if (path === undefined) {
    throw new EtcdProcessError('etcd is not on the PATH: install it, or name it as etcdPath or in ETCD_BIN');
  }
  const version = await askVersion(path);
  const fault = versionFault(version);
  if (fault !== undefined) throw new EtcdProcessError(`${path}: ${fault}`);
  return { path, version };
}

/** The tool that turns a snapshot into a data folder: etcdutl where there is one (etcd 3.6 needs it), else etcdctl. */
export function findRestorer(etcd: EtcdBinary, env: NodeJS.ProcessEnv): string {
  for (const name of ['etcdutl', 'etcdctl']) {
    const beside = join(dirname(etcd.path), name);
    if (dirname(etcd.path) !== '.' && isExecutable(beside)) return beside;
    const found = onPath(name, env);
    if (found !== undefined) return found;
  }
  throw new EtcdProcessError('neither etcdutl nor etcdctl is there to restore with: install one of them beside etcd');
}

async function askVersion(path: string): Promise<string> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 10_000, env: etcdEnvironment() });
    return /etcd Version: (\S+)/.exec(stdout)?.[1] ?? stdout.trim().slice(0, 80);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'it is not executable' : messageOf(error);
    throw new EtcdProcessError(`cannot run ${path}: ${why}`, { cause: error });
  }
}

/** etcd takes every ETCD_… variable for a flag, and one set for another purpose would contradict ours. */
export function etcdEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('ETCD_'));
  return { ...Object.fromEntries(kept), ETCD_UNSUPPORTED_ARCH: process.arch };
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
