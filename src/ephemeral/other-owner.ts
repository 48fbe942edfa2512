import type { Session } from '../core/session.ts';
import type { WatchHub } from '../core/watch-hub.ts';
import { patienceMs } from './ownership.ts';

/** The wait for somebody else's key to go: it is watched, not asked for, and with an end only for whom patience is bounded. */
export class OtherOwner {
  readonly #session: Session;
  readonly #hub: WatchHub;
  readonly #key: string;
  #patienceEndsMs: number | undefined;
  #stop: (() => void) | undefined;

  constructor(session: Session, hub: WatchHub, key: string) {
    this.#session = session;
    this.#hub = hub;
    this.#key = key;
  }

  get isAwaited(): boolean {
    return this.#stop !== undefined;
  }

  /** Milliseconds that patience lasts yet, counted from the first call; none with a key without a lease, which nothing will end. */
  async patienceLeftMs(lease: string): Promise<number> {
    const { connection, ttlMs } = this.#session;
    if (this.#patienceEndsMs === undefined) {
      const status =
        lease === '0'
          ? undefined
          : await connection.attempt((store) => store.leaseTimeToLive(lease, false, connection.callOptions));
      this.#patienceEndsMs = connection.clock.now() + (status ? patienceMs(ttlMs, status.grantedTtl * 1_000) : 0);
    }
    return this.#patienceEndsMs - connection.clock.now();
  }

  /** Calls once, when something happens to the key after this revision, or after `atMostMs`. */
  await(revision: number, epoch: number, atMostMs: number | undefined, onChange: () => void): void {
    const changed = () => {
      this.stop();
      onChange();
    };
    const endWatch = this.#hub.once({ key: this.#key }, revision + 1, epoch, changed);
    const timer = atMostMs === undefined ? undefined : this.#session.connection.clock.setTimeout(changed, atMostMs);
    this.#stop = () => {
      endWatch();
      timer?.clear();
    };
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /** The key is ours: the next owner is met with fresh patience. */
  forget(): void {
    this.#patienceEndsMs = undefined;
  }
}
