/** `npm run bench`: measures, prints the bars, writes the results. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bars, table } from './bars.ts';
import type { Bench } from './bench.ts';
import { build } from './build.ts';
import { type Contestant, DIRECT, ETCD3, FOLDER, MIRROR, nodeFleet } from './contestants.ts';
import { environment } from './environment.ts';
import { type EtcdServer, openServer } from './etcd-server.ts';
import { change } from './measurements/change.ts';
import { storm } from './measurements/storm.ts';
import { type BenchOptions, type MeasurementName, parseOptions, USAGE, UsageError } from './options.ts';
import { Samples } from './samples.ts';

const MEASURES: Partial<Record<MeasurementName, (bench: Bench) => Promise<void>>> = { storm, change };

const startMs = performance.now();

function say(line: string): void {
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  process.stderr.write(`${String(seconds).padStart(4)} s  ${line}\n`);
}

function contestantsOf(server: EtcdServer, options: BenchOptions): Contestant[] {
  const onEtcd = (name: string, kind: string): Contestant => ({
    name,
    command: nodeFleet(kind),
    endpoint: server.endpoint,
    socketsPerMember: 1,
    serverCpuMs: () => server.cpuMs(),
  });
  const all = [onEtcd(ETCD3, 'etcd3'), onEtcd(DIRECT, 'ours-direct'), onEtcd(MIRROR, 'ours-mirror')];
  return all.filter(({ name }) => options.contestants?.includes(name) ?? true);
}

async function measure(options: BenchOptions): Promise<boolean> {
  say('compiling');
  build();
  const server = await openServer(options.endpoint, options.fsync);
  const samples = new Samples();
  const bench: Bench = { options, server, contestants: contestantsOf(server, options), samples, faults: [], say };
  const env = environment(server, {});
  try {
    for (const name of options.only) await MEASURES[name]?.(bench);
  } finally {
    await server.close();
  }
  const rows = bars(samples);
  const stamp = env.date.replace(/[:.]/g, '-');
  mkdirSync(options.out, { recursive: true });
  const file = join(options.out, options.quick ? 'quick.json' : `${stamp}.json`);
  const results = { environment: env, options, bars: rows, faults: bench.faults, samples: samples.all() };
  writeFileSync(file, `${JSON.stringify(results)}\n`);
  say(`wrote ${file}`);
  if (!options.quick) process.stdout.write(`${table(rows.filter(({ met }) => met !== undefined))}\n`);
  for (const fault of bench.faults) process.stdout.write(`WRONG: ${fault}\n`);
  if (bench.faults.length === 0) process.stdout.write('all final lists agree, all connections were apart\n');
  return bench.faults.length === 0;
}

try {
  const options = parseOptions(process.argv.slice(2), join(FOLDER, 'results'));
  process.exitCode = (await measure(options)) ? 0 : 1;
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
