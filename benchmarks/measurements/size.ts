/** A directory of many children: the first listing, what each costs in memory, and one change after that. And many small ones. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Etcd3 } from 'etcd3';
import type { Bench } from '../bench.ts';
import { NAMES, nodeFleet } from '../contestants.ts';
import { DIRECTORY, VALUE, watchedDirectory } from '../fleet/member.ts';
import { FleetProcess } from '../fleet-process.ts';

const KINDS = [
  ['etcd3', NAMES.etcd3],
  ['ours-once', 'etcd-ephemeral, once'],
  ['ours-direct', NAMES.direct],
  ['ours-mirror', NAMES.mirror],
] as const;

/** Directories watched by one process. */
const WATCHES = 1_000;
/** Below etcd's 128 operations a transaction. */
const PUTS = 100;
/** Seconds. */
const MASTER_TTL = 60;
/** Nobody has written for so long: the shadow is complete. */
const SETTLED_MS = 1_000;
/** Commits of etcd's, which come after so many milliseconds where there is anything to commit. */
const COMMITS = 4;
const COMMIT_MS = 150;

const instance = (i: number) => `${DIRECTORY}/instance-${String(i).padStart(7, '0')}`;

async function fill({ server, stop }: Bench, count: number, key: (i: number) => string): Promise<void> {
  const client = new Etcd3({ hosts: server.endpoint });
  try {
    for (let start = 0; start < count; start += PUTS) {
      stop.throwIfAborted();
      const success = Array.from({ length: Math.min(PUTS, count - start) }, (_, i) => ({
        request_put: { key: Buffer.from(key(start + i)), value: Buffer.from(VALUE) },
      }));
      await client.kv.txn({ success });
    }
  } finally {
    client.close();
  }
}

/**
 * etcd 3.4 copies for each read the buffer of its last writes to keys, at the size to which its largest batch has made it, until some
 * commits pass without such a write. After 100,000 keys were deleted in one transaction all that follows would pay for that.
 */
async function forgetLargeBatch({ server, options }: Bench): Promise<void> {
  if (options.quick) return;
  const client = new Etcd3({ hosts: server.endpoint });
  for (let commit = 0; commit < COMMITS; commit += 1) {
    const lease = client.lease(MASTER_TTL);
    await lease.grant();
    await lease.revoke();
    await sleep(COMMIT_MS);
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
    await sleep(settledMs);
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
        const changes = options.quick ? 2 : 5;
        const { endpoint } = server;
        const answer = await process.order({ op: 'size', kind, endpoint, namespace, children, changes });
        if (answer.names !== children) bench.faults.push(`size, ${of}: ${answer.names} of ${children} names`);
        const add = (metric: string, unit: string, ...values: number[]) =>
          samples.add({ measurement: 'size', of, n: children, metric }, unit, ...values);
        add('first listing', 'ms', answer.firstMs);
        add('first listing with its names built', 'ms', answer.firstMs + answer.namesMs);
        add('bytes of the first listing', 'bytes', answer.firstBytesRead);
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

async function watch(bench: Bench, rounds: number): Promise<void> {
  const { options, server, samples } = bench;
  const { endpoint } = server;
  const watches = options.quick ? 20 : WATCHES;
  const namespace = `${server.namespace}/watches`;
  await fill(bench, watches + 1, (i) => `${namespace}${watchedDirectory(i)}/instance`);
  await forgetLargeBatch(bench);
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, of] of KINDS) {
      if (kind === 'ours-once') continue;
      bench.say(`size: ${watches} directories, ${of}, round ${round + 1} of ${rounds}`);
      const process = new FleetProcess(`watches ${kind}`, nodeFleet('alone'));
      try {
        const answer = await process.order({ op: 'watches', kind, endpoint, namespace, watches });
        if (answer.names !== watches) bench.faults.push(`size, ${of}: ${answer.names} names in ${watches} directories`);
        const add = (metric: string, unit: string, value: number) =>
          samples.add({ measurement: 'size', of, n: watches, metric: `many directories: ${metric}` }, unit, value);
        add('until all first listings are there', 'ms', answer.ms);
        add('heap a watch', 'bytes', answer.heapBytes / watches);
        add('bytes read a watch', 'bytes', answer.bytesRead / watches);
        add('CPU a watch', 'ms', answer.cpuMs / watches);
      } finally {
        await process.close();
      }
    }
  }
}

export async function size(bench: Bench): Promise<void> {
  const { options, server } = bench;
  const rounds = options.rounds ?? (options.quick ? 1 : 2);
  for (const children of options.quick ? [300] : [1_000, 10_000, 100_000]) {
    const namespace = `${server.namespace}/size-${children}`;
    bench.say(`size: making ${children} children`);
    await fill(bench, children, (i) => namespace + instance(i));
    const master = await startMirror(server.endpoint, namespace, options.quick ? 200 : SETTLED_MS);
    try {
      await read(bench, namespace, children, rounds);
    } finally {
      await master.close();
    }
    await forgetLargeBatch(bench);
  }
  await watch(bench, rounds);
}
