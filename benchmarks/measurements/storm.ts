/** All join, all leave, all restart: what each watcher hears, how long until all have seen all, and what it costs. */
import { type Bench, checkAgreement, closeFleets, type Entrant, openFleets, profiled, rotated } from '../bench.ts';
import type { StormAnswer, StormOrder } from '../fleet/protocol.ts';
import { mean } from '../statistics.ts';

const SPREAD_MS = 3_000;
const ROUNDS = { largest: 4, others: 2 };

interface Step {
  readonly name: string;
  readonly phase: StormOrder['phase'];
  readonly spreadMs: number;
}

const AT_ONCE: readonly Step[] = [
  { name: 'join', phase: 'join', spreadMs: 0 },
  { name: 'leave', phase: 'leave', spreadMs: 0 },
];

function spread(spreadMs: number): readonly Step[] {
  return [
    { name: 'join, spread', phase: 'join', spreadMs },
    { name: 'rolling restart', phase: 'restart', spreadMs },
    { name: 'leave, spread', phase: 'leave', spreadMs },
  ];
}

function record(
  bench: Bench,
  of: string,
  n: number,
  step: Step,
  answer: StormAnswer,
  serverCpuMs: number | undefined,
): void {
  const add = (metric: string, unit: string, value: number) =>
    bench.samples.add({ measurement: 'storm', of, n, metric: `${step.name}: ${metric}` }, unit, value);
  add('time', 'ms', answer.ms);
  add('messages a watcher', 'messages', mean(answer.messages));
  add('messages a watcher, most', 'messages', Math.max(...answer.messages));
  add('messages at the master', 'messages', answer.masterMessages);
  add('bytes read by all', 'bytes', answer.bytesRead);
  add('CPU of clients', 'ms', answer.cpuMs);
  if (serverCpuMs === undefined) return;
  add('CPU of servers', 'ms', serverCpuMs);
  add('CPU of all', 'ms', answer.cpuMs + serverCpuMs);
}

async function step(
  bench: Bench,
  entrants: readonly Entrant[],
  n: number,
  round: number,
  step: Step,
  counts: boolean,
): Promise<void> {
  const checksums: (readonly string[])[] = [];
  for (const { contestant, fleet } of rotated(entrants, round)) {
    const before = contestant.serverCpuMs();
    const answer = await fleet.order({ op: 'storm', phase: step.phase, spreadMs: step.spreadMs });
    const after = contestant.serverCpuMs();
    checksums.push(answer.checksums);
    if (counts) {
      const serverCpuMs = before === undefined || after === undefined ? undefined : after - before;
      record(bench, contestant.name, n, step, answer, serverCpuMs);
    }
  }
  checkAgreement(bench, `storm, ${step.name}, ${n} clients`, checksums);
}

export async function storm(bench: Bench): Promise<void> {
  const { options, contestants } = bench;
  const largest = Math.max(...options.sizes);
  const spreads = spread(options.quick ? 100 : SPREAD_MS);
  for (const n of options.sizes) {
    const rounds = options.rounds ?? (options.quick ? 1 : n === largest ? ROUNDS.largest : ROUNDS.others);
    bench.say(`storm: ${n} clients, opening the fleets`);
    const watching = contestants.filter(({ isWatching, most }) => isWatching && n <= most);
    const entrants = await openFleets(bench, watching, n);
    try {
      for (const one of AT_ONCE) await step(bench, entrants, n, 0, one, false);
      await profiled(bench, entrants, `storm-${n}`, async () => {
        for (let round = 0; round < rounds; round += 1) {
          bench.say(`storm: ${n} clients, round ${round + 1} of ${rounds}`);
          for (const one of AT_ONCE) await step(bench, entrants, n, round, one, true);
        }
      });
      // Each takes its seconds.
      for (const one of n === largest ? spreads : []) {
        bench.say(`storm: ${n} clients, ${one.name}`);
        await step(bench, entrants, n, 0, one, true);
      }
    } finally {
      await closeFleets(entrants);
    }
  }
}
