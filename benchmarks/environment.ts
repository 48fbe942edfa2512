/** What a figure depends on, to be kept beside it. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { FOLDER } from './contestants.ts';
import type { EtcdServer } from './etcd-server.ts';

export interface Machine {
  readonly date: string;
  readonly commit: string;
  /** Whether something was changed since that commit. */
  readonly dirty: boolean;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
}

export interface Environment extends Machine {
  readonly etcd: string;
  /** Whether etcd waited for its disk; null where it is somebody else's etcd. */
  readonly fsync: boolean | null;
  /** Versions of what else took part. */
  readonly packages: Readonly<Record<string, string>>;
}

function git(...args: readonly string[]): string {
  return spawnSync('git', args, { cwd: FOLDER, encoding: 'utf8' }).stdout?.trim() ?? '';
}

function versionOf(name: string): string {
  const file = join(FOLDER, '..', 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

export function machine(): Machine {
  return {
    date: new Date().toISOString(),
    commit: git('rev-parse', '--short=12', 'HEAD'),
    dirty: git('status', '--porcelain', '--', '../src').length > 0,
    node: process.versions.node,
    cpu: cpus()[0]?.model ?? '',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
  };
}

export function environment(server: EtcdServer, peers: Readonly<Record<string, string>>): Environment {
  const packages = Object.fromEntries(['etcd3', '@grpc/grpc-js', 'rxjs'].map((name) => [name, versionOf(name)]));
  return {
    ...machine(),
    etcd: server.version,
    fsync: server.fsync ?? null,
    packages: { ...packages, ...peers },
  };
}
