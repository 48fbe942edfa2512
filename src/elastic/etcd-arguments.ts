/** etcd's command line, from ours. Pure. */

/** TLS by the names of etcd's own flags. */
export interface ServerTls {
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly trustedCaFile?: string | undefined;
  readonly clientCertAuth?: boolean | undefined;
  readonly peerCertFile?: string | undefined;
  readonly peerKeyFile?: string | undefined;
  readonly peerTrustedCaFile?: string | undefined;
  readonly peerClientCertAuth?: boolean | undefined;
}

/** What may be set of the servers that are started. */
export interface EtcdTuning {
  /** How long history is kept, such as `10m` or `1h`. Default `10m`, so that heartbeats by put never fill the disk. */
  readonly autoCompaction?: string | undefined;
  /** Bytes of database at which etcd refuses writes. Default: etcd's. */
  readonly quotaBytes?: number | undefined;
  /** Entries between two snapshots. Default: etcd's. */
  readonly snapshotCount?: number | undefined;
  readonly heartbeatMs?: number | undefined;
  readonly electionMs?: number | undefined;
  /** Passed on as they are, last. */
  readonly extraArgs?: readonly string[] | undefined;
}

export interface ServerConfig {
  readonly name: string;
  readonly dataDir: string;
  readonly clientUrls: readonly string[];
  readonly advertiseClientUrls: readonly string[];
  readonly serverUrls: readonly string[];
  readonly advertiseServerUrls: readonly string[];
  readonly tls: ServerTls;
  readonly tuning: EtcdTuning;
}

/** How a server without data begins; etcd ignores it where there is a WAL. */
export interface Beginning {
  readonly initialCluster: string;
  readonly state: 'new' | 'existing';
  readonly token?: string | undefined;
}

/** A transaction of the mirror's holds up to 127 operations beside its marker, and users' own may be larger. */
const MAX_TXN_OPS = 512;
const KEPT_FILES = 5;

export function etcdArguments(config: ServerConfig, beginning: Beginning | undefined): string[] {
  const { tuning } = config;
  const flags: (readonly [string, string | number | boolean | undefined])[] = [
    ['name', config.name],
    ['data-dir', config.dataDir],
    ['listen-client-urls', config.clientUrls.join()],
    ['advertise-client-urls', config.advertiseClientUrls.join()],
    ['listen-peer-urls', config.serverUrls.join()],
    ['initial-advertise-peer-urls', config.advertiseServerUrls.join()],
    ['initial-cluster', beginning?.initialCluster],
    ['initial-cluster-state', beginning?.state],
    ['initial-cluster-token', beginning?.token],
    ['strict-reconfig-check', true],
    ['auto-compaction-mode', 'periodic'],
    ['auto-compaction-retention', tuning.autoCompaction ?? '10m'],
    ['max-txn-ops', MAX_TXN_OPS],
    ['max-snapshots', KEPT_FILES],
    ['max-wals', KEPT_FILES],
    ['quota-backend-bytes', tuning.quotaBytes],
    ['snapshot-count', tuning.snapshotCount],
    ['heartbeat-interval', tuning.heartbeatMs],
    ['election-timeout', tuning.electionMs],
    ['logger', 'zap'],
    ['log-outputs', 'stderr'],
    ...tlsFlags(config.tls),
  ];
  const given = flags.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [`--${name}=${value}`]));
  return [...given, ...(tuning.extraArgs ?? [])];
}

function tlsFlags(tls: ServerTls): (readonly [string, string | boolean | undefined])[] {
  return [
    ['cert-file', tls.certFile],
    ['key-file', tls.keyFile],
    ['trusted-ca-file', tls.trustedCaFile],
    ['client-cert-auth', tls.clientCertAuth],
    ['peer-cert-file', tls.peerCertFile],
    ['peer-key-file', tls.peerKeyFile],
    ['peer-trusted-ca-file', tls.peerTrustedCaFile],
    ['peer-client-cert-auth', tls.peerClientCertAuth],
  ];
}
