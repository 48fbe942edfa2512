/**
 * What a ttl buys and costs, on three members: how soon a killed process is gone, with and without a change of etcd's leader at the
 * worst moment, and how many registrations of living processes are lost when the leader is killed.
 *
 * Usage: tsx benchmarks/ttl/main.ts [--ttls 2,5,10,30] [--keys 8] [--kills 5]; writes benchmarks/results/ttl.json and prints the
 * README's table.
 */
import { execFileSync, fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { EtcdEphemeral } from '../../src/index.ts';
import { type EtcdCluster, etcdVersion, startCluster } from '../../test/support/etcd-process.ts';
import { until } from '../../test/support/wait.ts';

const { values } = parseArgs({
  options: {
    ttls: { type: 'string', default: '2,5,10,30' },
    keys: { type: 'string', default: '8' },
    kills: { type: 'string', default: '5' },
    out: { type: 'string', default: 'benchmarks/results/ttl.json' },
  },
});
const keys = Number(values.keys);
const kills = Number(values.kills);

interface Row {
  readonly ttl: number;
  /** Seconds from SIGKILL until the key was gone from a live list. */
  readonly gone: number[];
  /** The same, when the leader was killed just before the leases would have ended. */
  readonly goneWithLeaderChange: number[];
  readonly leaderKills: number;
  readonly registrationsWatched: number;
  /** How many of them their owner gave up at some time, and how many left the list. */
  readonly givenUp: number;
  /** Why they were given up. */
  readonly reasons: readonly string[];
  readonly left: number;
}

async function registrar(cluster: EtcdCluster, ttl: number, prefix: string) {
  const child = fork(new URL('./registrar.ts', import.meta.url), [
    cluster.endpoints.join(','),
    String(ttl),
    prefix,
    String(keys),
  ]);
  let isReady = false;
  const lost: string[] = [];
  child.on('message', (message: { ready?: boolean; state?: string; reason?: string }) => {
    if (message.ready) isReady = true;
    if (message.state === 'lost') lost.push(message.reason ?? '');
  });
  await until(() => isReady, 'the registrar to register');
  return { child, lost };
}

/** When each child left the list, by the clock. */
async function departures(client: EtcdEphemeral, prefix: string) {
  const leftAtMs = new Map<string, number>();
  let before: readonly string[] = [];
  const subscription = client.list(prefix, { watch: true, via: 'direct' }).subscribe(({ children }) => {
    for (const name of before) if (!children.includes(name)) leftAtMs.set(name, performance.now());
    before = children;
  });
  await until(() => before.length === keys, 'the list to have them all');
  return { leftAtMs, stop: () => subscription.unsubscribe() };
}

async function secondsUntilGone(cluster: EtcdCluster, client: EtcdEphemeral, ttl: number, killLeader: boolean) {
  const prefix = `/gone-${ttl}-${killLeader}`;
  const { child } = await registrar(cluster, ttl, prefix);
  const { leftAtMs, stop } = await departures(client, prefix);
  const killedMs = performance.now();
  child.kill('SIGKILL');
  if (killLeader) {
    // A keepalive goes out each quarter of the ttl: before three quarters none of the leases can have ended.
    await new Promise((resolve) => setTimeout(resolve, ttl * 700));
    const leader = await cluster.leader();
    await leader.kill();
    await until(() => leftAtMs.size === keys, 'all to be gone', (3 * ttl + 30) * 1_000);
    await leader.start();
  } else await until(() => leftAtMs.size === keys, 'all to be gone', (3 * ttl + 30) * 1_000);
  stop();
  return [...leftAtMs.values()].map((atMs) => Math.round(atMs - killedMs) / 1_000);
}

async function survival(cluster: EtcdCluster, client: EtcdEphemeral, ttl: number) {
  const prefix = `/alive-${ttl}`;
  const { child, lost } = await registrar(cluster, ttl, prefix);
  let left = 0;
  let before: readonly string[] = [];
  const subscription = client.list(prefix, { watch: true, via: 'direct' }).subscribe(({ children }) => {
    left += before.filter((name) => !children.includes(name)).length;
    before = children;
  });
  for (let kill = 0; kill < kills; kill += 1) {
    const leader = await cluster.leader();
    await leader.kill();
    await cluster.leader();
    // What the election may have cost shows within one ttl.
    await new Promise((resolve) => setTimeout(resolve, ttl * 1_000 + 1_000));
    await leader.start();
  }
  subscription.unsubscribe();
  child.kill('SIGKILL');
  return { givenUp: lost.length, reasons: [...new Set(lost)], left };
}

function span(samples: readonly number[]): string {
  return `${Math.min(...samples).toFixed(1)}-${Math.max(...samples).toFixed(1)} s`;
}

const rows: Row[] = [];
for (const ttl of values.ttls.split(',').map(Number)) {
  const cluster = await startCluster(3);
  const client = await EtcdEphemeral.connect({ hosts: cluster.endpoints, candidate: false });
  console.error(`ttl ${ttl}: how soon a killed process is gone`);
  const gone = await secondsUntilGone(cluster, client, ttl, false);
  console.error(`ttl ${ttl}: the same, with the leader killed late`);
  const goneWithLeaderChange = await secondsUntilGone(cluster, client, ttl, true);
  console.error(`ttl ${ttl}: ${kills} leaders killed under living processes`);
  const { givenUp, reasons, left } = await survival(cluster, client, ttl);
  await client.close();
  await cluster.destroy();
  rows.push({
    ttl,
    gone,
    goneWithLeaderChange,
    leaderKills: kills,
    registrationsWatched: keys,
    givenUp,
    reasons,
    left,
  });
}

const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
mkdirSync(new URL('../results/', import.meta.url), { recursive: true });
const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version, etcd: etcdVersion() };
writeFileSync(values.out, `${JSON.stringify({ commit, date: new Date().toISOString(), machine, rows }, null, 2)}\n`);
console.log(
  '| ttl | gone after SIGKILL | with a change of leader just then | leader killed under living registrations |',
);
console.log('|---|---|---|---|');
for (const row of rows) {
  const alive = `${row.leaderKills} kills, ${row.registrationsWatched} registrations: ${row.left} left the list, ${row.givenUp} given up for a moment`;
  console.log(`| ${row.ttl} s | ${span(row.gone)} | ${span(row.goneWithLeaderChange)} | ${alive} |`);
}
