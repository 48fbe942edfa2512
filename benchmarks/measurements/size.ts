/** A directory of many children: the first listing, what each costs in memory, and one change after that. */
import { Etcd3 } from 'etcd3';
import type { Bench } from '../bench.ts';
import { NAMES, nodeFleet } from '../contestants.ts';
import { DIRECTORY, VALUE } from '../fleet/member.ts';
import { FleetProcess } from '../fleet-process.ts';

const KINDS = [
  ['etcd3', NAMES.etcd3],
  ['ours-once', 'etcd-ephemeral, once'],
  ['ours-direct', NAMES.direct],
  ['ours-mirror', NAMES.mirror],
] as const;

/** Below etcd's 128 operations a transaction. */
const PUTS = 100;
/** Seconds. */
const MASTER_TTL = 60;
/** Nobody has written for so long: the shadow is complete. */
const SETTLED_MS = 1_000;

async function fill(endpoint: string, namespace: string, children: number): Promise<void> {
  const client = new Etcd3({ hosts: endpoint });
  for (let start = 0; start < children; start += PUTS) {
    const success = Array.from({ length: Math.min(PUTS, children - start) }, (_, i) => ({
      request_put: {
        key: Buffer.from(`${namespace}${DIRECTORY}/instance-${String(start + i).padStart(7, '0')}`),
        value: Buffer.from(VALUE),
      },
    }));
    await client.kv.txn({ success });
  }
  client.close();
}

/** A mirror that has been there for a while: its master, and the plain shadow of all children. */
async function startMirror(endpoint: string, namespace: string, settledMs: number): Promise<FleetProcess> {
  const master = new FleetProcess('size, master', nodeFleet('ours-mirror'));
  await master.order({ op: 'open', n: 1, endpoint, namespace, ttl: MASTER_TTL, heartbeat: 'lease', quietMs: 100 });
  const client = new Etcd3({ hosts: endpoint });
  const revision = async () => (await client.get('nothing').exec()).header.revision;
  for (let before = '', now = await revision(); now !== before; now = await revision()) {
    before = now;
    await new Promise((resolve) => setTimeout(resolve, settledMs));
  }
  client.close();
  return master;
}

async function read(bench: Bench, namespace: string, children: number, rounds: number): Promise<void> {
  const { options, server, samples } = bench;
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, of] of KINDS) {
      bench.say(`size: ${children} children, ${of}, round ${round + 1} of ${rounds}`);
      // A new process each time: the heap is measured, and nothing is compiled yet.
      const process = new FleetProcess(`size ${kind}`, nodeFleet('alone'));
      try {
        const changes = options.quick ? 2 : 10;
        const { endpoint } = server;
        const answer = await process.order({ op: 'size', kind, endpoint, namespace, children, changes });
        if (answer.names !== children) bench.faults.push(`size, ${of}: ${answer.names} of ${children} names`);
        const add = (metric: string, unit: string, ...values: number[]) =>
          samples.add({ measurement: 'size', of, n: children, metric }, unit, ...values);
        add('first listing', 'ms', answer.firstMs);
        add('first listing with its names built', 'ms', answer.firstMs + answer.namesMs);
        add('heap a child', 'bytes', answer.heapBytes / children);
        if (answer.changeMs.length === 0) continue;
        add('one change', 'ms', ...answer.changeMs);
        add('bytes a change', 'bytes', answer.changeBytesRead / answer.changeMs.length);
        add('CPU a change', 'ms', answer.changeCpuMs / answer.changeMs.length);
      } finally {
        await process.close();
      }
    }
  }
}

export async function size(bench: Bench): Promise<void> {
  const { options, server } = bench;
  const rounds = options.rounds ?? (options.quick ? 1 : 3);
  for (const children of options.quick ? [300] : [1_000, 10_000, 100_000]) {
    const namespace = `${server.namespace}/size-${children}`;
    bench.say(`size: making ${children} children`);
    await fill(server.endpoint, namespace, children);
    const master = await startMirror(server.endpoint, namespace, options.quick ? 200 : SETTLED_MS);
    try {
      await read(bench, namespace, children, rounds);
    } finally {
      await master.close();
    }
  }
}
