/** Many small directories watched by one process, through one connection. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Etcd3 } from 'etcd3';
import { EtcdEphemeral } from '../../src/index.ts';
import { heapBytes } from './heap.ts';
import { watchedDirectory } from './member.ts';
import { Counts } from './ours.ts';
import type { WatchesAnswer, WatchesOrder } from './protocol.ts';
import { bytesRead } from './sockets.ts';

const POLL_MS = 20;

interface Watcher {
  /** Resolves with the number of children in its first listing. */
  watch(directory: string): Promise<number>;
  /** Resolves when nothing more comes of so many watches. */
  settled(watches: number): Promise<void>;
  close(): Promise<void>;
}

async function ours(via: 'direct' | 'mirror', { endpoint, namespace }: WatchesOrder): Promise<Watcher> {
  const stats = new Counts();
  const client = await EtcdEphemeral.connect({ hosts: endpoint, namespace, stats });
  return {
    watch: (directory) =>
      new Promise((resolve, reject) => {
        client.list(directory, { watch: true, via }).subscribe({
          next: (listing) => resolve(listing.children.length),
          error: reject,
        });
      }),
    settled: async (watches) => {
      while (via === 'mirror' && stats.sum('mirror.masterships') < watches) await sleep(POLL_MS);
    },
    close: () => client.close(),
  };
}

async function byHand({ endpoint, namespace }: WatchesOrder): Promise<Watcher> {
  const client = new Etcd3({ hosts: endpoint });
  const sets: Set<string>[] = [];
  return {
    watch: async (directory) => {
      const prefix = `${namespace}${directory}/`;
      const { kvs, header } = await client.getAll().prefix(prefix).exec();
      const set = new Set(kvs.map((kv) => kv.key.toString().slice(prefix.length)));
      sets.push(set);
      const from = String(Number(header.revision) + 1);
      const watcher = await client.watch().prefix(prefix).startRevision(from).create();
      watcher.on('data', ({ events }) => {
        for (const { type, kv } of events) {
          const name = kv.key.toString().slice(prefix.length);
          if (type === 'Delete') set.delete(name);
          else set.add(name);
        }
      });
      return set.size;
    },
    settled: async () => {},
    close: async () => client.close(),
  };
}

function open(order: WatchesOrder): Promise<Watcher> {
  if (order.kind === 'etcd3') return byHand(order);
  return ours(order.kind === 'ours-direct' ? 'direct' : 'mirror', order);
}

export async function watches(order: WatchesOrder): Promise<WatchesAnswer> {
  const watcher = await open(order);
  // The first one makes connection, session and streams.
  await watcher.watch(watchedDirectory(0));
  await watcher.settled(1);
  const heapBefore = heapBytes();
  const bytesBefore = bytesRead();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const names = await Promise.all(
    Array.from({ length: order.watches }, (_, i) => watcher.watch(watchedDirectory(i + 1))),
  );
  const ms = performance.now() - startMs;
  await watcher.settled(order.watches + 1);
  const { user, system } = process.cpuUsage(cpuBefore);
  const answer = {
    ms,
    names: names.reduce((sum, count) => sum + count, 0),
    heapBytes: heapBytes() - heapBefore,
    bytesRead: bytesRead() - bytesBefore,
    cpuMs: (user + system) / 1_000,
  };
  await watcher.close();
  return answer;
}
