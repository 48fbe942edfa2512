/** Finds out who can take part, and starts what they need. */
import { join } from 'node:path';
import { BOUNDS, type Contestant, type ContestantId, NAMES, nodeFleet } from './contestants.ts';
import type { EtcdServer } from './etcd-server.ts';
import type { BenchOptions } from './options.ts';
import { type Availability, GO_FLEET, goFleet, moleculer, zooKeeper } from './peers/install.ts';
import { type PeerServer, startGrpcProxy, startZooKeeper } from './peers/servers.ts';

export interface Field {
  readonly contestants: readonly Contestant[];
  readonly versions: Readonly<Record<string, string>>;
  /** How to get those who are missing. */
  readonly missing: Readonly<Record<string, string>>;
  /** Why some do not take part with the most clients. */
  readonly bounded: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

/** Of those who sit out: `not run above N`, and why. */
function bounded(contestants: readonly Contestant[], largest: number): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { id, name } of contestants) {
    const bound = BOUNDS[id];
    if (bound && bound.most < largest) found[name] = `not run above ${bound.most} clients: ${bound.why}`;
  }
  return found;
}

export async function gather(server: EtcdServer, options: BenchOptions): Promise<Field> {
  const contestants: Contestant[] = [];
  const servers: PeerServer[] = [];
  const versions: Record<string, string> = {};
  const missing: Record<string, string> = {};
  const isWanted = (id: ContestantId) => options.contestants?.includes(id) ?? true;
  const add = (
    id: ContestantId,
    command: readonly string[],
    endpoint: string,
    serverCpuMs: () => number | undefined,
  ) => {
    const most = BOUNDS[id]?.most ?? Number.POSITIVE_INFINITY;
    contestants.push({ id, name: NAMES[id], command, endpoint, isWatching: id !== 'moleculer', most, serverCpuMs });
  };
  const onEtcd = (id: ContestantId, command: readonly string[]) =>
    add(id, command, server.endpoint, () => server.cpuMs());
  const isThere = (id: ContestantId, found: Availability): boolean => {
    if ('missing' in found) missing[NAMES[id]] = found.missing;
    else versions[NAMES[id]] = found.version;
    return !('missing' in found);
  };
  if (isWanted('etcd3')) onEtcd('etcd3', nodeFleet('etcd3'));
  if (isWanted('direct')) onEtcd('direct', nodeFleet('ours-direct'));
  if (isWanted('mirror')) onEtcd('mirror', nodeFleet('ours-mirror'));
  if (isWanted('go') && isThere('go', goFleet())) onEtcd('go', [GO_FLEET]);
  if (isWanted('moleculer') && isThere('moleculer', moleculer())) onEtcd('moleculer', nodeFleet('moleculer'));
  if (isWanted('proxy') && server.endpoint.startsWith('http://')) {
    const proxy = await startGrpcProxy(server.endpoint, join(process.env.ETCD_BIN_DIR ?? '', 'etcd'));
    servers.push(proxy);
    add('proxy', nodeFleet('etcd3'), proxy.endpoint, () => sum(server.cpuMs(), proxy.cpuMs()));
  }
  if (isWanted('zookeeper') && isThere('zookeeper', zooKeeper())) {
    const zookeeper = await startZooKeeper(options.fsync);
    servers.push(zookeeper);
    add('zookeeper', nodeFleet('zookeeper'), zookeeper.endpoint, () => zookeeper.cpuMs());
  }
  return {
    contestants,
    versions,
    missing,
    bounded: bounded(contestants, Math.max(...options.sizes)),
    close: async () => {
      for (const one of servers) await one.close();
    },
  };
}
