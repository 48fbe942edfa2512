import test from 'ava';
import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { TestElastic } from '../support/elastic.ts';
import { until } from '../support/wait.ts';

const CALL_TIMEOUT_MS = 1_000;

/** Writes one key after the other, as fast as they are acknowledged, and remembers each that was. */
class Writer {
  readonly acknowledged: string[] = [];
  longestGapMs = 0;
  readonly #store: EtcdStore;
  #isStopped = false;
  #lastMs = performance.now();
  readonly #done: Promise<void>;

  constructor(hosts: () => readonly string[]) {
    this.#store = new EtcdStore({ hosts });
    this.#done = this.#run();
  }

  /** The longest time without an acknowledged write since the last call. */
  takeGap(): number {
    const gapMs = this.longestGapMs;
    this.longestGapMs = 0;
    return Math.round(gapMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }

  async stored(): Promise<Set<string>> {
    await until(() => this.#store.connect({ timeoutMs: CALL_TIMEOUT_MS }), 'a member that serves');
    const { kvs } = await this.#store.range({ type: 'range', target: { prefix: '/written/' } }, { timeoutMs: 10_000 });
    this.#store.close();
    return new Set(kvs.map(({ key }) => key));
  }

  async #run(): Promise<void> {
    for (let count = 0, isConnected = false; !this.#isStopped; ) {
      try {
        if (!isConnected) await this.#store.connect({ timeoutMs: CALL_TIMEOUT_MS });
        isConnected = true;
        const key = `/written/${String(count++).padStart(8, '0')}`;
        await this.#store.txn(
          { compares: [], success: [{ type: 'put', key, value: 'v' }] },
          { timeoutMs: CALL_TIMEOUT_MS },
        );
        this.acknowledged.push(key);
        const nowMs = performance.now();
        this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastMs);
        this.#lastMs = nowMs;
        await new Promise((resolve) => setTimeout(resolve, 2));
      } catch {
        isConnected = false;
      }
    }
  }
}

test('no acknowledged write is lost while the size goes 1, 3, 5, 3, 1, leaders are killed and a member is replaced', async (t) => {
  const cluster = new TestElastic();
  t.teardown(() => cluster.destroy());
  const h1 = await cluster.add({ flags: ['--ideal-cluster-size', '1'] });
  await h1.ready();
  for (let count = 2; count <= 5; count++) await cluster.add();
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  const remote = cluster.remote();
  const writer = new Writer(() => cluster.hosts.map((host) => host.clientUrl));
  t.teardown(() => writer.stop());

  const resize = async (size: number) => {
    await remote.resize(size);
    await cluster.settled(size);
    t.log(`to ${size}: the longest gap between two acknowledged writes was ${writer.takeGap()} ms`);
  };
  const killLeader = async (size: number) => {
    const leader = (await cluster.settled(size)).rows.find((row) => row.leader);
    const host = cluster.hosts.find(({ name }) => name === leader?.host);
    if (!host) throw new Error('no host leads');
    writer.takeGap();
    await host.crash();
    await until(
      async () => (await remote.status()).rows.some((row) => row.leader && row.host !== host.name),
      'a new leader',
    );
    t.log(`leader killed: etcd itself was without one for ${writer.takeGap()} ms`);
    return host;
  };

  await cluster.settled(1);
  await resize(3);
  await killLeader(3);
  await cluster.settled(3, 'with a replacement');
  t.log(`replaced: ${writer.takeGap()} ms`);
  for (const host of cluster.hosts.filter(({ isRunning }) => !isRunning))
    cluster.restart(host, { seeds: cluster.hosts.map(({ clientUrl }) => clientUrl) });
  await Promise.all(cluster.hosts.map((host) => host.ready()));
  await resize(5);
  const host = await killLeader(5);
  cluster.restart(host, { seeds: cluster.hosts.map(({ clientUrl }) => clientUrl) });
  await host.ready();
  await cluster.settled(5, 'with the killed one back');
  await resize(3);
  await resize(1);
  await writer.stop();

  const stored = await writer.stored();
  const lost = writer.acknowledged.filter((key) => !stored.has(key));
  t.log(`${writer.acknowledged.length} writes acknowledged, ${lost.length} lost`);
  t.deepEqual(lost, []);
  t.true(writer.acknowledged.length > 1_000);
});
