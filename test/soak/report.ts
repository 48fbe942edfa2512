/** What came of a soak, as JSON and as a page to read. */
import { cpus, tmpdir, totalmem } from 'node:os';
import { etcdVersion } from '../support/etcd-process.ts';
import type { Soak } from './soak.ts';

function quantile(sorted: readonly number[], q: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0);
}

/** Milliseconds. */
function spread(values: readonly number[]) {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    count: sorted.length,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    max: Math.round(sorted.at(-1) ?? 0),
  };
}

export function makeReport(soak: Soak, commit: string, startedAt: string) {
  const { judge, options } = soak;
  const broken = (...promises: string[]) => judge.violations.filter(({ promise }) => promises.includes(promise)).length;
  const undisturbed = judge.lags.filter(({ calledItselfLive, wasTroubled }) => calledItselfLive && !wasTroubled);
  return {
    startedAt,
    commit,
    command: `npm run soak -- --minutes ${options.minutes} --seed ${options.seed}`,
    versions: { node: process.versions.node, etcd: etcdVersion() },
    machine: { cores: cpus().length, memoryGb: Math.round(totalmem() / 2 ** 30) },
    /** Where the members keep their data: with /dev/shm no disk is in play. */
    dataFolder: tmpdir(),
    size: options.size,
    isInterrupted: soak.isInterrupted,
    rounds: soak.rounds,
    faults: Object.fromEntries([...soak.faults].sort(([a], [b]) => (a < b ? -1 : 1))),
    leaderChanges: soak.pulse?.leaderChangesMs.length ?? 0,
    leaders: soak.pulse?.leaders ?? [],
    timeline: soak.timeline,
    ghosts: { checked: judge.ghostsChecked, over: broken('R2'), worstMs: Math.round(judge.worstGhostMs) },
    missingAfterHeal: broken('R4'),
    wrongListsAfterHeal: broken('L2'),
    departures: judge.departures,
    listings: { checked: judge.listings, wrong: broken('L1', 'L6') },
    historyChanges: soak.history.changes,
    /** The whole time, faults and outages included. */
    behindMs: spread(judge.lags.map(({ ms }) => ms)),
    /** Of lists that called themselves live, and to whose process nothing had happened: what befalls others and the store is left. */
    behindUndisturbedMs: spread(undisturbed.map(({ ms }) => ms)),
    worstUndisturbed: undisturbed.sort((a, b) => b.ms - a.ms).slice(0, 10),
    longestStaleMs: Math.round(judge.longestStaleMs),
    servicesBackMs: spread(soak.recoveries.map(({ servicesMs }) => servicesMs)),
    listsRightMs: spread(soak.recoveries.map(({ listsMs }) => listsMs)),
    storeTroubles: {
      count: soak.pulse?.troubles.length ?? 0,
      ms: soak.pulse?.troubles.reduce((sum, it) => sum + it.untilMs - it.fromMs, 0) ?? 0,
    },
    longestOwnStallMs: Math.round(soak.longestOwnStallMs),
    processes: soak.processes.map(({ plan, incarnation, samples }) => ({
      name: plan.name,
      clients: plan.clients.length,
      incarnations: incarnation,
      samples: samples.map(({ incarnation: of, sample }) => ({ incarnation: of, ...rounded(sample) })),
    })),
    members: soak.memberMemory.map(({ startMb, endMb }) => ({
      startMb: Math.round(startMb),
      endMb: Math.round(endMb),
    })),
    violations: judge.violations.map(({ promise, what, atMs }) => ({
      promise,
      what,
      at: new Date(atMs).toISOString(),
    })),
  };
}

export type SoakReport = ReturnType<typeof makeReport>;

function rounded<T extends object>(sample: T): T {
  const entries = Object.entries(sample).map(([name, value]) => [
    name,
    typeof value === 'number' ? Math.round(value * 10) / 10 : value,
  ]);
  return Object.fromEntries(entries.filter(([name]) => name !== 'is')) as T;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

export function asMarkdown(report: SoakReport): string {
  const { size, ghosts, listings, behindMs, behindUndisturbedMs, servicesBackMs, listsRightMs } = report;
  const total = Object.values(report.faults).reduce((sum, n) => sum + n, 0);
  return `# Soak

${size.services} services and ${size.watchers} watchers, each with a connection and a session of its own, in ${report.processes.length} processes (half of them with a ttl of
5 s, half with 10 s); three members of etcd ${report.versions.etcd}; between each process and each member a TCP proxy. In each round the services come,
go and change, one to five faults strike at once, and when they are over everything must come right within its bound. What the store went
through is recorded by etcdctl, straight at each member, and every listing that a watcher was given is compared with it.

\`${report.command}\`, begun ${report.startedAt}, commit ${report.commit}, Node ${report.versions.node}, ${report.machine.cores} cores, ${report.machine.memoryGb} GB, the members' data in
${report.dataFolder}.
${report.isInterrupted ? '\n**It was interrupted: this is no result.**\n' : ''}
| promise | found |
|---|---|
| promises broken | ${report.violations.length} |
| faults survived | ${total} in ${report.rounds} rounds, with ${report.leaderChanges} changes of leader |
| ghosts: keys of killed or frozen processes that stood longer than ttl + 1 s (and a ttl and an election for each change of leader) | ${ghosts.over} of ${ghosts.checked} |
| live services missing after the faults of a round, beyond ttl + 1 s | ${report.missingAfterHeal} of ${report.rounds * size.services} |
| … all were there after (p50, longest; restarts of killed processes included) | ${seconds(servicesBackMs.p50)}, ${seconds(servicesBackMs.max)} |
| lists that were wrong 10 s after a round's faults, or for a dead process's ttl longer | ${report.wrongListsAfterHeal} of ${report.rounds * size.watchers} |
| … all were right after (p50, longest) | ${seconds(listsRightMs.p50)}, ${seconds(listsRightMs.max)} |
| listings that were not what the store held at their revision, or whose revision fell | ${listings.wrong} of ${listings.checked} |
| departures from the store without a reason | ${report.violations.filter(({ promise }) => promise === 'R4').length} of ${report.departures} |
| unhandled rejections, uncaught exceptions, warnings, unexpected ends, output on stderr | ${report.violations.filter(({ promise }) => promise === 'S3').length} |
| a list behind the store, faults and outages included (p50, p99, longest) | ${behindMs.p50} ms, ${seconds(behindMs.p99)}, ${seconds(behindMs.max)} |
| … of lists that called themselves live, to whose process nothing had happened | ${behindUndisturbedMs.p50} ms, ${seconds(behindUndisturbedMs.p99)}, ${seconds(behindUndisturbedMs.max)} |
| the longest that a list called itself stale | ${seconds(report.longestStaleMs)} |

## Faults

| what | times |
|---|---|
${Object.entries(report.faults)
  .map(([kind, times]) => `| ${kind} | ${times} |`)
  .join('\n')}

## Memory and handles

Of each process's last life: when it had settled, and in the end. Heaps after a garbage collection.

| process | clients | lives | rss, MiB | heap, MiB | files | sockets | handles |
|---|---|---|---|---|---|---|---|
${report.processes.map(processRow).join('\n')}

The members' resident memory went from ${report.members.map(({ startMb }) => startMb).join(', ')} to ${report.members.map(({ endMb }) => endMb).join(', ')} MiB.
${report.violations.length === 0 ? '' : `\n## Broken\n\n${report.violations.map(({ promise, what, at }) => `- ${at} ${promise}: ${what}`).join('\n')}\n`}`;
}

function processRow({ name, clients, incarnations, samples }: SoakReport['processes'][number]): string {
  const own = samples.filter(({ incarnation }) => incarnation === incarnations);
  const [first, last] = [own[0], own.at(-1)];
  const pair = (field: 'rssMb' | 'heapMb' | 'files' | 'sockets' | 'handles') => `${first?.[field]} → ${last?.[field]}`;
  return `| ${name} | ${clients} | ${incarnations} | ${pair('rssMb')} | ${pair('heapMb')} | ${pair('files')} | ${pair('sockets')} | ${pair('handles')} |`;
}
