/** Many registrations in one process, beside as many puts by hand. */
import type { Bench } from '../bench.ts';
import { NAMES, nodeFleet } from '../contestants.ts';
import { FleetProcess } from '../fleet-process.ts';

const CONCURRENCY = 64;
/** Seconds. */
const TTL = 4;
const IDLE_MS = 2 * TTL * 1_000;

export async function register(bench: Bench): Promise<void> {
  const { options, server, samples } = bench;
  const rounds = options.rounds ?? (options.quick ? 1 : 2);
  for (const keys of options.quick ? [50] : [1_000, 10_000]) {
    for (let round = 0; round < rounds; round += 1) {
      bench.say(`register: ${keys} keys, round ${round + 1} of ${rounds}`);
      for (const kind of ['etcd3', 'ours'] as const) {
        // A new process each time: the heap is measured.
        const process = new FleetProcess(`register ${kind}`, nodeFleet('alone'));
        try {
          const namespace = `${server.namespace}/register-${kind}-${keys}-${round}`;
          const idleMs = round > 0 ? 0 : options.quick ? 200 : IDLE_MS;
          const order = { op: 'register', kind, endpoint: server.endpoint, namespace, keys, ttl: TTL, idleMs } as const;
          const answer = await process.order({ ...order, concurrency: CONCURRENCY });
          const of = kind === 'ours' ? NAMES.direct : NAMES.etcd3;
          const add = (metric: string, unit: string, value: number) =>
            samples.add({ measurement: 'register', of, n: keys, metric }, unit, value);
          add('rate', 'keys/s', (keys / answer.ms) * 1_000);
          add('CPU a key', 'µs', (answer.cpuMs / keys) * 1_000);
          add('heap a key', 'bytes', answer.heapBytes / keys);
          if (idleMs === 0) continue;
          add('keepalives a ttl', 'keepalives', (answer.keepalives * TTL * 1_000) / idleMs);
          add('bytes written a ttl', 'bytes', (answer.idleBytesWritten * TTL * 1_000) / idleMs);
          add('bytes read a ttl', 'bytes', (answer.idleBytesRead * TTL * 1_000) / idleMs);
          add('idle CPU a second', 'ms', (answer.idleCpuMs * 1_000) / idleMs);
        } finally {
          await process.close();
        }
      }
    }
  }
}
