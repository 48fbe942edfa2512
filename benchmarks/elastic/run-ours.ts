import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ElasticCluster } from '../../src/elastic.ts';
import { ClusterAdmin } from '../../src/etcd/cluster-admin.ts';
import { temporaryFolder } from '../../test/support/children.ts';
import { TestElastic, type TestHost } from '../../test/support/elastic.ts';
import { freePorts } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';
import { Writer } from '../../test/support/writer.ts';
import { backupsMs, electedMs, loneElectionMs } from './chance.ts';
import { SETTLED_MS } from './run-by-hand.ts';
import { type Note, timed } from './steps.ts';

const CALL_TIMEOUT_MS = 1_000;
const PATIENCE_MS = 90_000;
const FLAGS = ['--dead-after', '1', '--min-voters', '1'];

/** In one process, so that no start of Node is counted. */
export async function bootOurs(note: Note): Promise<void> {
  const [client, server] = await freePorts(2);
  const options = {
    hostname: 'h1',
    dataDir: join(temporaryFolder('ours-'), 'h1'),
    clientUrls: [`http://127.0.0.1:${client}`],
    serverUrls: [`http://127.0.0.1:${server}`],
  };
  const log = join(`${options.dataDir}.state`, 'etcd.log');
  for (const step of ['boot of the first', 'restart of an only one'] as const) {
    const cluster = new ElasticCluster(options);
    try {
      const ms = await timed(() => cluster.start());
      note(step, ms, loneElectionMs(log));
    } finally {
      await cluster.stop();
    }
  }
}

class Ours {
  readonly cluster = new TestElastic();
  readonly admin = new ClusterAdmin();

  async hosts(count: number): Promise<void> {
    const flags = [...FLAGS, '--ideal-cluster-size', '1'];
    await (await this.cluster.add({ flags })).ready();
    for (let number = 2; number <= count; number++) await (await this.cluster.add({ flags })).ready();
    await this.cluster.settled(1, 'and a learner');
  }

  /** How many members vote, as the first host that answers has it. */
  async voters(): Promise<number> {
    for (const { clientUrl } of this.cluster.hosts.filter(({ isRunning }) => isRunning)) {
      const list = await this.admin.memberList(clientUrl, CALL_TIMEOUT_MS).catch(() => undefined);
      if (list) return list.members.filter(({ isLearner }) => !isLearner).length;
    }
    return 0;
  }

  /** The time that went into backups since. */
  #backupsMs(sinceMs: number): number {
    return backupsMs(
      this.cluster.hosts.map(({ stateDir }) => join(stateDir, 'backups')),
      sinceMs,
    );
  }

  /** From the moment that the size is written. */
  async resize(size: number): Promise<{ ms: number; apartMs: number }> {
    const remote = this.cluster.remote();
    await remote.status();
    const sinceMs = Date.now();
    const ms = await timed(async () => {
      await remote.resize(size);
      await until(async () => (await this.voters()) === size, `${size} voters`, PATIENCE_MS);
    });
    return { ms, apartMs: this.#backupsMs(sinceMs) };
  }

  async leader(size: number): Promise<TestHost> {
    const row = (await this.cluster.settled(size)).rows.find(({ leader }) => leader);
    return this.host(row?.host);
  }

  async follower(size: number): Promise<TestHost> {
    const row = (await this.cluster.settled(size)).rows.find(({ leader, role }) => role === 'voter' && !leader);
    return this.host(row?.host);
  }

  host(name: string | undefined): TestHost {
    const host = this.cluster.hosts.find((one) => one.name === name);
    if (!host) throw new Error(`there is no host ${name}`);
    return host;
  }

  /** From the decision that it is dead until as many vote as before; `by` brings somebody to take its place. */
  async replace(host: TestHost, size: number, by?: () => Promise<unknown>): Promise<{ ms: number; apartMs: number }> {
    await host.crash();
    await by?.();
    const decided = `record: remove ${host.name}: ${host.name} is dead`;
    await until(() => this.cluster.hosts.some(({ stderr }) => stderr.includes(decided)), decided, PATIENCE_MS);
    const sinceMs = Date.now();
    const ms = await timed(() =>
      until(async () => this.#isReplaced(host, size), `${host.name} to be replaced`, PATIENCE_MS),
    );
    return { ms, apartMs: this.#backupsMs(sinceMs) };
  }

  async #isReplaced(host: TestHost, size: number): Promise<boolean> {
    for (const { clientUrl } of this.cluster.hosts.filter(({ isRunning }) => isRunning)) {
      const list = await this.admin.memberList(clientUrl, CALL_TIMEOUT_MS).catch(() => undefined);
      if (!list) continue;
      const voters = list.members.filter(({ isLearner }) => !isLearner);
      return voters.length === size && !voters.some(({ name }) => name === host.name);
    }
    return false;
  }

  async restartInPlace(host: TestHost): Promise<{ ms: number; apartMs: number }> {
    const { etcdPid } = host;
    if (etcdPid === undefined) throw new Error(`${host.name} has no etcd`);
    const killedMs = Date.now();
    process.kill(etcdPid, 'SIGKILL');
    await until(() => host.etcdPid !== etcdPid, 'its end');
    const deadMs = Date.now();
    const prove = () => this.admin.proveQuorum(host.clientUrl, CALL_TIMEOUT_MS).then(() => true);
    const ms = await timed(() => until(prove, `${host.name} to serve again`));
    return { ms, apartMs: Math.max(0, (electedMs(this.logs(), killedMs) ?? deadMs) - deadMs) };
  }

  /** Of all etcds that there are. */
  logs(): readonly string[] {
    return this.cluster.hosts.map(({ stateDir }) => join(stateDir, 'etcd.log')).filter(existsSync);
  }

  async close(): Promise<void> {
    await this.admin.close();
    await this.cluster.destroy();
  }
}

export async function smallOurs(note: Note): Promise<void> {
  const ours = new Ours();
  try {
    await ours.hosts(1);
    const h1 = ours.host('h1');
    await ours.cluster.add({ flags: FLAGS });
    // From the record on: the boot of a machine, and of Node, is nobody's matter here.
    await until(() => /^record: join .*warm learner/m.test(h1.stderr), 'the record');
    note('a learner joins', await timed(() => until(() => h1.stderr.includes('runs as a learner'), 'a learner')));
    await (await ours.cluster.add({ flags: FLAGS })).ready();
    await sleep(SETTLED_MS);
    const grown = await ours.resize(3);
    note('1 to 3', grown.ms, grown.apartMs);
    await sleep(SETTLED_MS);
    // A follower's end calls for no election.
    const { ms } = await ours.restartInPlace(await ours.follower(3));
    note('etcd of a follower killed, restarted in place', ms);
    await sleep(SETTLED_MS);
    const led = await ours.restartInPlace(await ours.leader(3));
    note('etcd of the leader killed, restarted in place', led.ms, led.apartMs);
    await sleep(SETTLED_MS);
    await deaths(ours, note);
    await gapsOurs(ours, note);
  } finally {
    await ours.close();
  }
}

async function deaths(ours: Ours, note: Note): Promise<void> {
  const replaced = await ours.replace(await ours.follower(3), 3, () => ours.cluster.add({ flags: FLAGS }));
  note('dead one replaced', replaced.ms, replaced.apartMs);
  await (await ours.cluster.add({ flags: FLAGS })).ready();
  await ours.cluster.settled(3, 'and a spare');
  await sleep(SETTLED_MS);
  const spared = await ours.replace(await ours.follower(3), 3);
  note('dead one replaced by the spare', spared.ms, spared.apartMs);
}

async function gapsOurs(ours: Ours, note: Note): Promise<void> {
  await (await ours.cluster.add({ flags: FLAGS })).ready();
  await ours.cluster.settled(3, 'and a spare again');
  await sleep(SETTLED_MS);
  const writer = new Writer(() =>
    ours.cluster.hosts.filter(({ isRunning }) => isRunning).map(({ clientUrl }) => clientUrl),
  );
  try {
    await until(() => writer.acknowledged.length > 100, 'writes');
    const leader = await ours.leader(3);
    writer.takeGap();
    leader.signal('SIGINT');
    await leader.ended();
    await sleep(1_000);
    note('write gap: leader leaves its place', writer.takeGap());
    const next = await ours.leader(3);
    writer.takeGap();
    const killedMs = Date.now();
    await next.crash();
    const remote = ours.cluster.remote();
    await until(
      async () => (await remote.status()).rows.some((row) => row.leader && row.host !== next.name),
      'another leader',
    );
    await sleep(1_000);
    const electionMs = (electedMs(ours.logs(), killedMs) ?? killedMs) - killedMs;
    note('write gap: leader killed', writer.takeGap(), electionMs);
  } finally {
    await writer.stop();
  }
}

export async function largeOurs(note: Note): Promise<void> {
  const ours = new Ours();
  try {
    await ours.hosts(5);
    await sleep(SETTLED_MS);
    const grown = await ours.resize(5);
    note('1 to 5', grown.ms, grown.apartMs);
    await ours.cluster.settled(5);
    await sleep(SETTLED_MS);
    const shrunk = await ours.resize(1);
    note('5 to 1', shrunk.ms, shrunk.apartMs);
  } finally {
    await ours.close();
  }
}
