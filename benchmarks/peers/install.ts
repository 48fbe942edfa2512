/** What can be had of the peers, and how to get the rest. */
import { spawnSync } from 'node:child_process';
import { accessSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { FOLDER } from '../contestants.ts';

/** Present, with its version; or missing, with the way to get it. */
export type Availability = { readonly version: string } | { readonly missing: string };

const GOPATH = '/usr/share/gocode';
const CLIENTV3 = join(GOPATH, 'src/go.etcd.io/etcd/clientv3');
export const ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar';
export const ZOOKEEPER_CLASSPATH = `/etc/zookeeper/conf:${ZOOKEEPER_JAR}`;
export const GO_FLEET = join(FOLDER, 'peers', 'go', 'fleet');

function isThere(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => isThere(join(folder, program)));
}

/** Of a package among the peers' own; undefined when it is not installed. */
function packageVersion(name: string): string | undefined {
  const file = join(FOLDER, 'peers', 'node_modules', name, 'package.json');
  return isThere(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : undefined;
}

function debianVersion(name: string): string | undefined {
  const { stdout, status } = spawnSync('dpkg-query', ['-W', '-f', `\${Version}`, name], { encoding: 'utf8' });
  return status === 0 && stdout !== '' ? stdout : undefined;
}

const NPM = 'npm install --prefix benchmarks/peers';

/** Builds the Go fleet where it is missing or older than its source. */
export function goFleet(): Availability {
  const source = join(FOLDER, 'peers', 'go', 'main.go');
  if (!isOnPath('go') || !isThere(CLIENTV3)) {
    return { missing: 'Debian, Ubuntu: apt-get install golang-go golang-etcd-server-dev' };
  }
  if (!isThere(GO_FLEET) || statSync(GO_FLEET).mtimeMs < statSync(source).mtimeMs) {
    const env = { ...process.env, GO111MODULE: 'off', GOPATH };
    const { status, stderr } = spawnSync('go', ['build', '-o', GO_FLEET, source], { env, encoding: 'utf8' });
    if (status !== 0) return { missing: `benchmarks/peers/go does not build: ${stderr}` };
  }
  const compiler = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout.trim();
  return { version: `${debianVersion('golang-etcd-server-dev') ?? '?'} (${compiler})` };
}

export function zooKeeper(): Availability {
  if (!isThere(ZOOKEEPER_JAR) || !isOnPath('java')) return { missing: 'Debian, Ubuntu: apt-get install zookeeper' };
  const client = packageVersion('node-zookeeper-client');
  if (client === undefined) return { missing: NPM };
  return { version: `${debianVersion('zookeeper') ?? '?'}, node-zookeeper-client ${client}` };
}

export function moleculer(): Availability {
  const version = packageVersion('moleculer');
  return version === undefined ? { missing: NPM } : { version };
}
