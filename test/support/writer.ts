import { EtcdStore } from '../../src/etcd/etcd-store.ts';
import { until } from './wait.ts';

const CALL_TIMEOUT_MS = 1_000;

/** Writes one key after the other, as fast as they are acknowledged, and remembers each that was. */
export class Writer {
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

  /** Those of the acknowledged writes that are not there. */
  async lost(): Promise<string[]> {
    const stored = await this.#stored();
    return this.acknowledged.filter((key) => !stored.has(key));
  }

  async #stored(): Promise<Set<string>> {
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
