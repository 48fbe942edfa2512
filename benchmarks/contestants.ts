/** Who takes part, and how each one's fleet is started. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const FOLDER = dirname(fileURLToPath(import.meta.url));

/** In the order of tables and plots. */
export const NAMES = {
  mirror: 'etcd-ephemeral, mirror',
  direct: 'etcd-ephemeral, direct',
  etcd3: 'etcd3 by hand',
  proxy: 'etcd3 by hand, behind grpc-proxy',
  go: "Go's clientv3",
  zookeeper: 'ZooKeeper',
  moleculer: 'Moleculer',
} as const;

export type ContestantId = keyof typeof NAMES;

export interface Contestant {
  readonly id: ContestantId;
  readonly name: string;
  /** A program that obeys `fleet/protocol.ts`. */
  readonly command: readonly string[];
  readonly endpoint: string;
  /** It is told of changes; else it asks, at each of its heartbeats. */
  readonly isWatching: boolean;
  /** With more clients than this it does not take part. */
  readonly most: number;
  /** CPU that its servers have used, beside those of the others. */
  readonly serverCpuMs: () => number | undefined;
}

/** With how many clients at most these take part, and why. */
export const BOUNDS: Partial<Record<ContestantId, { readonly most: number; readonly why: string }>> = {
  moleculer: {
    most: 100,
    why: 'each keeps all others and reads the keys of all at every heartbeat; 200 in one process took 3 GB, 400 ran out of heap',
  },
  proxy: { most: 200, why: 'with 400 joining at once one of the lists was still wrong after 60 s, for good' },
};

/** What tsc makes of the fleets and of the library: what users run, without tsx's additions to each function. */
export const BUILD = join(FOLDER, '.build');

export function nodeFleet(kind: string): readonly string[] {
  return [process.execPath, join(BUILD, 'benchmarks', 'fleet', 'main.js'), kind];
}
