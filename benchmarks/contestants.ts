/** Who takes part, and how each one's fleet is started. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const FOLDER = dirname(fileURLToPath(import.meta.url));

export const MIRROR = 'etcd-ephemeral, mirror';
export const DIRECT = 'etcd-ephemeral, direct';
export const ETCD3 = 'etcd3 by hand';
export const PROXY = 'etcd3 by hand, behind grpc-proxy';
export const GO = "Go's clientv3";
export const ZOOKEEPER = 'ZooKeeper';
export const MOLECULER = "Moleculer's etcd3 discoverer";

export interface Contestant {
  readonly name: string;
  /** A program that obeys `fleet/protocol.ts`. */
  readonly command: readonly string[];
  readonly endpoint: string;
  /** The members' connections are each one's own: as many sockets as members. */
  readonly socketsPerMember: number;
  /** CPU that its servers have used, beside those of the others. */
  readonly serverCpuMs: () => number | undefined;
}

/** What tsc makes of the fleets and of the library: what users run, without tsx's additions to each function. */
export const BUILD = join(FOLDER, '.build');

export function nodeFleet(kind: string): readonly string[] {
  return [process.execPath, join(BUILD, 'benchmarks', 'fleet', 'main.js'), kind];
}
