/** A directory of many children: its first listing, and single changes after it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Etcd3 } from 'etcd3';
import { EtcdEphemeral, type Listing } from '../../src/index.ts';
import { heapBytes } from './heap.ts';
import { DIRECTORY, VALUE } from './member.ts';
import type { SizeAnswer, SizeOrder } from './protocol.ts';
import { bytesRead } from './sockets.ts';

const PAGE = 10_000;
const PROBE = 'probe-0';
/** More than a mirror's gap between two markers: each change is a first one. */
const CHANGE_PAUSE_MS = 100;

/** A reader of a directory. */
interface Reader {
  /** The first listing: how many names. */
  first(): Promise<number>;
  /** Builds the names. */
  names(): readonly string[];
  /** Calls once when the number of children is this; undefined where nothing is followed. */
  readonly until: ((size: number) => Promise<void>) | undefined;
  close(): Promise<void>;
}

async function once({ endpoint, namespace }: SizeOrder): Promise<Reader> {
  const client = await EtcdEphemeral.connect({ hosts: endpoint, namespace, candidate: false });
  let listing: Listing | undefined;
  return {
    first: async () => {
      listing = await client.list(DIRECTORY);
      return listing.revision;
    },
    names: () => listing?.children ?? [],
    until: undefined,
    close: () => client.close(),
  };
}

async function live(via: 'direct' | 'mirror', { endpoint, namespace }: SizeOrder): Promise<Reader> {
  const client = await EtcdEphemeral.connect({ hosts: endpoint, namespace });
  let listing: Listing | undefined;
  let heard = 0;
  let onListing = () => {};
  const next = () =>
    new Promise<void>((resolve) => {
      onListing = resolve;
    });
  return {
    first: async () => {
      const listed = next();
      client.list(DIRECTORY, { watch: true, via }).subscribe((newest) => {
        listing = newest;
        heard += 1;
        onListing();
      });
      await listed;
      return heard;
    },
    names: () => listing?.children ?? [],
    // Not by counting children, which would build them: each change here is one listing.
    until: next,
    close: () => client.close(),
  };
}

async function byHand({ endpoint, namespace }: SizeOrder): Promise<Reader> {
  const client = new Etcd3({ hosts: endpoint, grpcOptions: { 'grpc.max_receive_message_length': -1 } });
  const prefix = Buffer.from(`${namespace}${DIRECTORY}/`);
  const end = Buffer.from(`${namespace}${DIRECTORY}0`);
  const found = new Set<string>();
  let reached: { size: number; resolve: () => void } | undefined;
  return {
    first: async () => {
      let from = prefix;
      for (;;) {
        const page = await client.kv.range({ key: from, range_end: end, limit: PAGE, keys_only: true });
        for (const { key } of page.kvs) found.add(key.toString().slice(prefix.length));
        const last = page.kvs.at(-1);
        if (page.more && last) from = Buffer.concat([last.key, Buffer.from([0])]);
        else {
          const watcher = await client
            .watch()
            .prefix(prefix)
            .startRevision(String(Number(page.header.revision) + 1))
            .create();
          watcher.on('data', ({ events }) => {
            for (const { type, kv } of events) {
              const name = kv.key.toString().slice(prefix.length);
              if (type === 'Delete') found.delete(name);
              else found.add(name);
            }
            if (found.size === reached?.size) reached.resolve();
          });
          return found.size;
        }
      }
    },
    names: () => [...found].sort(),
    until: (size) =>
      new Promise((resolve) => {
        reached = { size, resolve };
      }),
    close: async () => client.close(),
  };
}

function open(order: SizeOrder): Promise<Reader> {
  if (order.kind === 'etcd3') return byHand(order);
  if (order.kind === 'ours-once') return once(order);
  return live(order.kind === 'ours-direct' ? 'direct' : 'mirror', order);
}

export async function size(order: SizeOrder): Promise<SizeAnswer> {
  const reader = await open(order);
  // Its connection is not the reader's: what it reads is not counted.
  const changer = new Etcd3({ hosts: order.endpoint, grpcOptions: { 'grpc.use_local_subchannel_pool': 1 } });
  const heapBefore = heapBytes();
  const firstBytesBefore = bytesRead();
  const startMs = performance.now();
  await reader.first();
  const firstMs = performance.now() - startMs;
  const firstBytesRead = bytesRead() - firstBytesBefore;
  const names = reader.names().length;
  const namesMs = performance.now() - startMs - firstMs;
  const heap = heapBytes() - heapBefore;
  const key = `${order.namespace}${DIRECTORY}/${PROBE}`;
  const changeMs: number[] = [];
  const bytesBefore = bytesRead();
  const cpuBefore = process.cpuUsage();
  if (reader.until) {
    for (let i = 0; i < order.changes * 2; i += 1) {
      const seen = reader.until(names + (i % 2 === 0 ? 1 : 0));
      await sleep(CHANGE_PAUSE_MS);
      const changedMs = performance.now();
      if (i % 2 === 0) await changer.put(key).value(VALUE);
      else await changer.delete().key(key);
      await seen;
      changeMs.push(performance.now() - changedMs);
    }
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const answer = {
    firstMs,
    namesMs,
    names,
    heapBytes: heap,
    firstBytesRead,
    changeMs,
    changeBytesRead: bytesRead() - bytesBefore,
    changeCpuMs: (user + system) / 1_000,
  };
  changer.close();
  await reader.close();
  return answer;
}
