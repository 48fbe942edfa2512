/** Many keys in one process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Etcd3 } from 'etcd3';
import { EtcdEphemeral } from '../../src/index.ts';
import { heapBytes } from './heap.ts';
import { DIRECTORY, VALUE } from './member.ts';
import { Counts } from './ours.ts';
import type { RegisterAnswer, RegisterOrder } from './protocol.ts';
import { bytesRead, bytesWritten } from './sockets.ts';

/** A registrar and how it is looked at. */
interface Registrar {
  put(key: string): Promise<unknown>;
  keepalives(): number;
  close(): Promise<void>;
}

async function ours({ endpoint, namespace, ttl }: RegisterOrder): Promise<Registrar> {
  const stats = new Counts();
  const client = await EtcdEphemeral.connect({ hosts: endpoint, namespace, ttl, stats });
  const warm = await client.addKey('/warm/0', VALUE);
  await warm.remove();
  return {
    put: (name) => client.addKey(`${DIRECTORY}/${name}`, VALUE),
    keepalives: () => stats.sum('heartbeat.done'),
    close: () => client.close(),
  };
}

async function byHand({ endpoint, namespace, ttl }: RegisterOrder): Promise<Registrar> {
  const client = new Etcd3({ hosts: endpoint });
  const lease = client.lease(ttl);
  let keepalives = 0;
  lease.on('keepaliveFired', () => {
    keepalives += 1;
  });
  await lease.grant();
  return {
    put: (name) => lease.put(`${namespace}${DIRECTORY}/${name}`).value(VALUE).exec(),
    keepalives: () => keepalives,
    close: async () => {
      await lease.revoke();
      client.close();
    },
  };
}

export async function register(order: RegisterOrder): Promise<RegisterAnswer> {
  const registrar = await (order.kind === 'ours' ? ours(order) : byHand(order));
  const heapBefore = heapBytes();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: order.concurrency }, async () => {
      while (next < order.keys) {
        next += 1;
        await registrar.put(`key-${String(next).padStart(6, '0')}`);
      }
    }),
  );
  const ms = performance.now() - startMs;
  const putting = process.cpuUsage(cpuBefore);
  const heap = heapBytes() - heapBefore;
  const before = {
    keepalives: registrar.keepalives(),
    written: bytesWritten(),
    read: bytesRead(),
    cpu: process.cpuUsage(),
  };
  await sleep(order.idleMs);
  const idle = process.cpuUsage(before.cpu);
  const answer = {
    ms,
    keepalives: registrar.keepalives() - before.keepalives,
    idleBytesWritten: bytesWritten() - before.written,
    idleBytesRead: bytesRead() - before.read,
    idleCpuMs: (idle.user + idle.system) / 1_000,
    heapBytes: heap,
    cpuMs: (putting.user + putting.system) / 1_000,
  };
  await registrar.close();
  return answer;
}
