/** `npm run bench`: measures, prints the bars, writes results and report. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bars, table } from './bars.ts';
import type { Bench } from './bench.ts';
import { build } from './build.ts';
import { FOLDER } from './contestants.ts';
import { gather } from './entrants.ts';
import { environment } from './environment.ts';
import { LeftBehindError, openServer } from './etcd-server.ts';
import { endFleets } from './fleet-process.ts';
import { change } from './measurements/change.ts';
import { detect } from './measurements/detect.ts';
import { elastic } from './measurements/elastic.ts';
import { failover } from './measurements/failover.ts';
import { refresh } from './measurements/refresh.ts';
import { register } from './measurements/register.ts';
import { size } from './measurements/size.ts';
import { start } from './measurements/start.ts';
import { storm } from './measurements/storm.ts';
import { type BenchOptions, type MeasurementName, parseOptions, USAGE, UsageError } from './options.ts';
import { report } from './report.ts';
import type { Results } from './results.ts';
import { Samples } from './samples.ts';

const MEASURES: Readonly<Record<MeasurementName, (bench: Bench) => Promise<void>>> = {
  storm,
  change,
  refresh,
  register,
  detect,
  failover,
  size,
  start,
  elastic,
};

const startMs = performance.now();
const stop = new AbortController();

function say(line: string): void {
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  process.stderr.write(`${String(seconds).padStart(4)} s  ${line}\n`);
}

/** What goes wrong in one measurement is told, and costs nobody the others. */
async function attempt(name: MeasurementName, bench: Bench): Promise<void> {
  try {
    await MEASURES[name](bench);
  } catch (error) {
    if (stop.signal.aborted) throw error;
    const { message } = error as Error;
    bench.faults.push(`${name} broke off: ${message}`);
    say(`${name} broke off: ${message}`);
  }
}

async function measure(options: BenchOptions): Promise<Results> {
  say('compiling');
  build();
  const server = await openServer(options.endpoint, options.fsync);
  try {
    const field = await gather(server, options);
    for (const [name, how] of Object.entries(field.missing)) say(`without ${name}; to have it: ${how}`);
    const env = environment(server, field.versions);
    const samples = new Samples();
    const { contestants, missing, bounded } = field;
    const bench: Bench = { options, server, contestants, samples, faults: [], stop: stop.signal, say };
    const seconds: Record<string, number> = {};
    try {
      for (const name of options.only) {
        stop.signal.throwIfAborted();
        const beginMs = performance.now();
        await attempt(name, bench);
        seconds[name] = Math.round((performance.now() - beginMs) / 1_000);
        say(`${name} took ${seconds[name]} s`);
      }
    } finally {
      await field.close();
    }
    // Where the results go is no part of them.
    const { out: _, ...recorded } = options;
    return {
      environment: env,
      options: recorded,
      missing,
      bounded,
      seconds,
      faults: bench.faults,
      samples: samples.all(),
    };
  } finally {
    // They write as long as they live.
    await endFleets();
    await server.close();
  }
}

function write(results: Results, options: BenchOptions): void {
  mkdirSync(options.out, { recursive: true });
  const stamp = results.environment.date.slice(0, 19).replace(/[:T]/g, '-');
  const file = join(options.out, options.quick ? 'quick.json' : `${stamp}.json`);
  writeFileSync(file, `${JSON.stringify(results)}\n`);
  report(file);
  say(`wrote ${file}, report.html and figures.md beside it`);
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** What was written to somebody else's etcd is taken away first; a second signal does not wait for that. */
function onSignal(signal: keyof typeof EXIT_CODES): void {
  process.exitCode = EXIT_CODES[signal];
  if (stop.signal.aborted) process.exit();
  say(`${signal}: removing what was written`);
  stop.abort();
  void endFleets();
}

process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);

try {
  const options = parseOptions(process.argv.slice(2), join(FOLDER, 'results'));
  const results = await measure(options);
  write(results, options);
  // A tiny run shows that the lists are right, and nothing else.
  if (!options.quick) process.stdout.write(`${table(bars(Samples.from(results.samples)))}\n`);
  for (const fault of results.faults) process.stdout.write(`WRONG: ${fault}\n`);
  if (results.faults.length === 0) process.stdout.write('all final lists agree, each client had its own connection\n');
  process.exitCode = results.faults.length === 0 ? 0 : 1;
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    process.exitCode = 2;
  } else if (!stop.signal.aborted || error instanceof LeftBehindError) throw error;
}
