import { readFileSync } from 'node:fs';
import { hostname as systemHostname } from 'node:os';
import { resolve } from 'node:path';
import { InvalidOptionError } from '../core/errors.ts';
import { messageOf } from '../core/log.ts';
import { isValidName } from '../core/paths.ts';
import type { Logger } from '../ephemeral/api.ts';
import { dynamicSize } from './chooser.ts';
import type { EtcdTuning, ServerTls } from './etcd-arguments.ts';
import { SIZE_MAX, SIZE_MIN } from './limits.ts';
import type { Chooser, Policy } from './model.ts';
import { checkUrls, clientSocketIn, isLoopback, SERVER_SOCKET } from './urls.ts';

/** Times are seconds. TLS files go by the names of etcd's own flags. */
export interface ElasticOptions extends ServerTls {
  /** The host's name in the cluster. Default: the system's. */
  hostname?: string | undefined;
  /** Client URLs of the cluster. They may name all hosts, this one included. Without seeds this host is the first. */
  seeds?: readonly string[] | undefined;
  /** Allows a new cluster on URLs beyond this machine; with seeds, only if none of them knows a cluster. */
  bootstrap?: boolean | undefined;
  /** Where etcd listens for clients. Default http://127.0.0.1:2379. */
  clientUrls?: readonly string[] | undefined;
  /** Where etcd listens for other members. Default http://127.0.0.1:2380. */
  serverUrls?: readonly string[] | undefined;
  /** How clients reach it. Default: clientUrls. */
  advertiseClientUrls?: readonly string[] | undefined;
  /** How members reach it. Default: serverUrls. */
  advertiseServerUrls?: readonly string[] | undefined;
  /** A client only: never runs an etcd. Needs seeds. */
  noServer?: boolean | undefined;
  /** Unix sockets in dataDir instead of ports: a cluster for this machine alone, of this one host. Excludes seeds, URLs and TLS. */
  noNetwork?: boolean | undefined;
  /** Where the cluster's own keys lie. Default `/_elastic`. */
  namespace?: string | undefined;
  /** Default: HOSTNAME.elastic in the working directory. */
  dataDir?: string | undefined;
  /** What outlives the data: which cluster this host belongs to, and backups. Default: dataDir with `.state` appended. */
  stateDir?: string | undefined;
  /** Stored unless a size is stored already. From 1 to 99. */
  idealClusterSize?: number | undefined;
  chooser?: Chooser | undefined;
  /** A dead voter that nobody can replace is kept where fewer would be left. Default 3. */
  minVoters?: number | undefined;
  /** Until a silent host's member is replaced: longer than a reboot. Default 30. */
  deadAfter?: number | undefined;
  etcdPath?: string | undefined;
  etcd?: EtcdTuning | undefined;
  auth?: { readonly username: string; readonly password: string } | undefined;
  /** For the whole of a first start. Default 30. */
  startTimeout?: number | undefined;
  logger?: Logger | undefined;
  /** Stops the cluster's host, as `stop()` does. */
  signal?: AbortSignal | undefined;
}

/** Options, checked and complete. */
export interface ElasticConfig {
  readonly hostname: string;
  readonly seeds: readonly string[];
  readonly bootstrap: boolean;
  readonly clientUrls: readonly string[];
  readonly serverUrls: readonly string[];
  readonly advertiseClientUrls: readonly string[];
  readonly advertiseServerUrls: readonly string[];
  readonly noServer: boolean;
  readonly noNetwork: boolean;
  readonly namespace: string;
  readonly dataDir: string;
  readonly stateDir: string;
  readonly idealClusterSize: number | undefined;
  readonly policy: Policy;
  readonly etcdPath: string | undefined;
  readonly tls: ServerTls;
  readonly credentials: { rootCertificate: Buffer; privateKey?: Buffer; certChain?: Buffer } | undefined;
  readonly tuning: EtcdTuning;
  readonly auth: { readonly username: string; readonly password: string } | undefined;
  readonly startTimeoutMs: number;
  readonly logger: Logger;
}

const TLS_NAMES = [
  'certFile',
  'keyFile',
  'trustedCaFile',
  'clientCertAuth',
  'peerCertFile',
  'peerKeyFile',
  'peerTrustedCaFile',
  'peerClientCertAuth',
] as const satisfies readonly (keyof ServerTls)[];

const URL_NAMES = [
  'clientUrls',
  'serverUrls',
  'advertiseClientUrls',
  'advertiseServerUrls',
] as const satisfies readonly (keyof ElasticOptions)[];

const NAMES: readonly string[] = [
  'hostname',
  'seeds',
  'bootstrap',
  ...URL_NAMES,
  'noServer',
  'noNetwork',
  'namespace',
  'dataDir',
  'stateDir',
  'idealClusterSize',
  'chooser',
  'minVoters',
  'deadAfter',
  'etcdPath',
  'etcd',
  'auth',
  'startTimeout',
  'logger',
  'signal',
  ...TLS_NAMES,
];

const TUNING_NAMES = ['autoCompaction', 'quotaBytes', 'snapshotCount', 'heartbeatMs', 'electionMs', 'extraArgs'];

export function defaultDataDir(hostname: string): string {
  return `${hostname}.elastic`;
}

export function defaultStateDir(dataDir: string): string {
  return `${dataDir}.state`;
}

/** @throws InvalidOptionError, before anything is started */
export function resolveElasticOptions(options: ElasticOptions): ElasticConfig {
  checkNames(options);
  const hostname = options.hostname ?? systemHostname();
  if (!isValidName(hostname) || /[/=,\s]/.test(hostname)) {
    throw new InvalidOptionError(`hostname "${hostname}" is none: no "/", "=", "," or space, and no "_" at its start`);
  }
  const seeds = options.seeds === undefined ? [] : checkUrls('seeds', options.seeds);
  const dataDir = resolve(options.dataDir ?? defaultDataDir(hostname));
  const config: ElasticConfig = {
    hostname,
    seeds,
    bootstrap: options.bootstrap ?? false,
    ...(options.noNetwork ? socketsIn(dataDir, options) : resolveUrls(options)),
    noServer: options.noServer ?? false,
    noNetwork: options.noNetwork ?? false,
    namespace: checkNamespace(options.namespace ?? '/_elastic'),
    dataDir,
    stateDir: resolve(options.stateDir ?? defaultStateDir(dataDir)),
    idealClusterSize: checkSize(options.idealClusterSize),
    policy: checkPolicy(options),
    etcdPath: options.etcdPath,
    tls: Object.fromEntries(TLS_NAMES.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]))),
    credentials: readCredentials(options),
    tuning: checkTuning(options.etcd ?? {}),
    auth: options.auth,
    startTimeoutMs: positive('startTimeout', options.startTimeout ?? 30) * 1_000,
    logger: options.logger ?? SILENT,
  };
  checkTogether(config);
  return config;
}

type Urls = Pick<ElasticConfig, 'clientUrls' | 'serverUrls' | 'advertiseClientUrls' | 'advertiseServerUrls'>;

function resolveUrls(options: ElasticOptions): Urls {
  const clientUrls = withLocal(checkUrls('clientUrls', options.clientUrls ?? ['http://127.0.0.1:2379']));
  const serverUrls = checkUrls('serverUrls', options.serverUrls ?? ['http://127.0.0.1:2380']);
  const toClients = options.advertiseClientUrls ?? options.clientUrls ?? clientUrls;
  return {
    clientUrls,
    serverUrls,
    advertiseClientUrls: checkUrls('advertiseClientUrls', toClients),
    advertiseServerUrls: checkUrls('advertiseServerUrls', options.advertiseServerUrls ?? serverUrls),
  };
}

function socketsIn(dataDir: string, options: ElasticOptions): Urls {
  const excluded = ['seeds', ...URL_NAMES, ...TLS_NAMES] as const;
  const given = excluded.find((name) => options[name] !== undefined);
  if (given !== undefined) {
    throw new InvalidOptionError(
      `noNetwork and ${given} contradict each other: without a network there are sockets only`,
    );
  }
  const clientUrls = [clientSocketIn(dataDir)];
  const serverUrls = [SERVER_SOCKET];
  return { clientUrls, serverUrls, advertiseClientUrls: clientUrls, advertiseServerUrls: serverUrls };
}

const SILENT: Logger = { info() {}, warn() {}, error() {} };

function checkNames(options: ElasticOptions): void {
  const unknown = Object.keys(options).filter((name) => !NAMES.includes(name));
  if (unknown.length > 0) {
    throw new InvalidOptionError(
      `ElasticCluster has no option "${unknown.join('", "')}"; it takes ${NAMES.join(', ')}`,
    );
  }
}

function checkTogether(config: ElasticConfig): void {
  if (config.noServer && config.seeds.length === 0) {
    throw new InvalidOptionError('noServer needs seeds: a host that is a client only has to know where the cluster is');
  }
  if (config.noServer && config.bootstrap) throw new InvalidOptionError('noServer and bootstrap contradict each other');
  const own = [...config.clientUrls, ...config.serverUrls];
  const twice = own.find((url, index) => own.indexOf(url) !== index);
  if (twice !== undefined) throw new InvalidOptionError(`${twice} is given twice among clientUrls and serverUrls`);
  if (config.dataDir === config.stateDir || config.stateDir.startsWith(`${config.dataDir}/etcd`)) {
    throw new InvalidOptionError('stateDir has to lie apart from the data: it must outlive it');
  }
  for (const [name, urls] of [
    ['advertiseClientUrls', config.advertiseClientUrls],
    ['advertiseServerUrls', config.advertiseServerUrls],
  ] as const) {
    const wildcard = urls.find((url) => /\/\/(0\.0\.0\.0|\[::\])(:|$)/.test(url));
    if (wildcard)
      throw new InvalidOptionError(`${name}: ${wildcard} is an address to listen on, not one to be reached at`);
  }
}

/** Whether starting a new cluster here could surprise anyone: on this machine alone it cannot. */
export function mayBootstrapUnasked(config: ElasticConfig): boolean {
  const urls = [
    ...config.clientUrls,
    ...config.serverUrls,
    ...config.advertiseClientUrls,
    ...config.advertiseServerUrls,
  ];
  return urls.every(isLoopback);
}

/** A local client URL is added when none is given, so that what runs on the host reaches its own member. */
function withLocal(urls: readonly string[]): readonly string[] {
  const isCovered = urls.some((url) => isLoopback(url) || /\/\/(0\.0\.0\.0|\[::\])(:|$)/.test(url));
  if (isCovered || urls[0] === undefined) return urls;
  const { protocol, port } = new URL(urls[0]);
  return [...urls, `${protocol}//127.0.0.1:${port}`];
}

function checkNamespace(namespace: string): string {
  if (!/^\/[^/]/.test(namespace) || namespace.endsWith('/')) {
    throw new InvalidOptionError(`namespace "${namespace}": it starts with "/", goes on, and does not end with "/"`);
  }
  return namespace;
}

export function checkSize(size: number | undefined): number | undefined {
  if (size === undefined || (Number.isInteger(size) && size >= SIZE_MIN && size <= SIZE_MAX)) return size;
  throw new InvalidOptionError(
    `idealClusterSize is a whole number from ${SIZE_MIN} to ${SIZE_MAX}, got ${String(size)}`,
  );
}

function checkPolicy({ chooser = dynamicSize, minVoters = 3, deadAfter = 30 }: ElasticOptions): Policy {
  if (!Number.isInteger(minVoters) || minVoters < 1 || minVoters > SIZE_MAX) {
    throw new InvalidOptionError(`minVoters is a whole number from 1 to ${SIZE_MAX}, got ${String(minVoters)}`);
  }
  return { chooser, minVoters, deadAfterMs: positive('deadAfter', deadAfter) * 1_000 };
}

function checkTuning(tuning: EtcdTuning): EtcdTuning {
  const unknown = Object.keys(tuning).filter((name) => !TUNING_NAMES.includes(name));
  if (unknown.length > 0) {
    throw new InvalidOptionError(
      `the option etcd has no "${unknown.join('", "')}"; it takes ${TUNING_NAMES.join(', ')}`,
    );
  }
  return tuning;
}

function positive(name: string, seconds: number): number {
  if (typeof seconds === 'number' && seconds > 0) return seconds;
  throw new InvalidOptionError(`${name} is a number of seconds above 0, got ${String(seconds)}`);
}

/** Our own client trusts what the servers trust, and shows their certificate where clients need one. */
function readCredentials({ trustedCaFile, certFile, keyFile }: ElasticOptions): ElasticConfig['credentials'] {
  if (trustedCaFile === undefined) {
    if (certFile !== undefined) throw new InvalidOptionError('certFile needs trustedCaFile, to know whom to trust');
    return undefined;
  }
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new InvalidOptionError('certFile and keyFile go together');
  const rootCertificate = read('trustedCaFile', trustedCaFile);
  if (certFile === undefined || keyFile === undefined) return { rootCertificate };
  return { rootCertificate, certChain: read('certFile', certFile), privateKey: read('keyFile', keyFile) };
}

function read(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new InvalidOptionError(`${name}: cannot read ${path}: ${messageOf(error)}`);
  }
}
