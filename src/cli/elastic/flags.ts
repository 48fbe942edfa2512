import { InvalidArgumentError } from 'commander';
import type { ElasticOptions } from '../../elastic/options.ts';
import type { Context } from '../context.ts';
import { connectOptions, type GlobalFlags } from '../options.ts';

/** What describes a host, for `run`, `recover` and `restore`. */
export interface HostFlags extends GlobalFlags {
  hostname?: string;
  dataDir?: string;
  stateDir?: string;
  seeds?: string[];
  bootstrap?: boolean;
  clientUrls?: string[];
  serverUrls?: string[];
  advertiseClientUrls?: string[];
  advertiseServerUrls?: string[];
  /** `false` with --no-server. */
  server?: boolean;
  /** `false` with --no-network. */
  network?: boolean;
  idealClusterSize?: number;
  minVoters?: number;
  deadAfter?: number;
  startTimeout?: number;
  etcdPath?: string;
  certFile?: string;
  keyFile?: string;
  trustedCaFile?: string;
  clientCertAuth?: boolean;
  peerCertFile?: string;
  peerKeyFile?: string;
  peerTrustedCaFile?: string;
  peerClientCertAuth?: boolean;
  autoCompaction?: string;
  quotaBytes?: number;
  snapshotCount?: number;
  heartbeatMs?: number;
  electionMs?: number;
  etcdArg?: string[];
}

export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It is a whole number.');
  return Number(text);
}

export function collect(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), text];
}

/** Flags by the names of the options; what was not given is left out. */
export function elasticOptions(flags: HostFlags, env: Context['env']): ElasticOptions {
  const { autoCompaction, quotaBytes, snapshotCount, heartbeatMs, electionMs, etcdArg: extraArgs } = flags;
  const etcd = defined({ autoCompaction, quotaBytes, snapshotCount, heartbeatMs, electionMs, extraArgs });
  const { auth } = flags.user === undefined ? {} : connectOptions(flags, env);
  const { hostname, dataDir, stateDir, seeds, bootstrap, clientUrls, serverUrls, namespace, minVoters, deadAfter } =
    flags;
  const { advertiseClientUrls, advertiseServerUrls, idealClusterSize, startTimeout, etcdPath } = flags;
  const { certFile, keyFile, trustedCaFile, clientCertAuth } = flags;
  const { peerCertFile, peerKeyFile, peerTrustedCaFile, peerClientCertAuth } = flags;
  return defined({
    hostname,
    dataDir,
    stateDir,
    seeds,
    bootstrap,
    clientUrls,
    serverUrls,
    advertiseClientUrls,
    advertiseServerUrls,
    noServer: flags.server === false ? true : undefined,
    noNetwork: flags.network === false ? true : undefined,
    namespace,
    idealClusterSize,
    minVoters,
    deadAfter,
    startTimeout,
    etcdPath,
    certFile,
    keyFile,
    trustedCaFile,
    clientCertAuth,
    peerCertFile,
    peerKeyFile,
    peerTrustedCaFile,
    peerClientCertAuth,
    auth,
    etcd,
  });
}

function defined<T extends object>(from: T): T {
  return Object.fromEntries(Object.entries(from).filter(([, value]) => value !== undefined)) as T;
}
