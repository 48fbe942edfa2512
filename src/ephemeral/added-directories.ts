import { backoffMs } from '../core/backoff.ts';
import { sleep } from '../core/clock.ts';
import type { Connection, InEpoch } from '../core/connection.ts';
import { debugLog, messageOf } from '../core/log.ts';
import { firstKey, type Txn, type TxnResult } from '../core/store.ts';
import type { WatchHub } from '../core/watch-hub.ts';

const log = debugLog('directories');

/** A store that was restored may be full, or not let us write yet. */
const RETRY = { firstMs: 100, maxMs: 1_000 };

/**
 * The directories that this client has added, by their keys. They hang on no lease, so a store that was wiped or restored to an older
 * state has lost them for good: they are made again then. Within an epoch whoever removes one has removed it, which is watched.
 */
export class AddedDirectories {
  readonly #connection: Connection;
  readonly #hub: WatchHub;
  /** Of each how its watch is ended. */
  readonly #stops = new Map<string, () => void>();

  constructor(connection: Connection, hub: WatchHub) {
    this.#connection = connection;
    this.#hub = hub;
  }

  /** It was there at this revision, and is to be. */
  remember(key: string, value: string, revision: number, epoch: number): void {
    this.forget(key);
    // The answer may have come just when the client was closed.
    if (this.#connection.closing.aborted) return;
    const watch = this.#hub.watch({ key }, revision + 1, epoch, {
      onEvents: (events) => {
        if (events.at(-1)?.type === 'delete') this.forget(key);
      },
      onGap: (gap) => void this.#bring(key, value, gap === 'restored' ? undefined : epoch),
      onRefused: (error) => {
        log('%s is not watched: %s', key, messageOf(error));
        this.forget(key);
      },
    });
    this.#stops.set(key, () => watch.close());
  }

  /** It is not to be there any more. */
  forget(key: string): void {
    this.#stops.get(key)?.();
    this.#stops.delete(key);
  }

  /**
   * Looks whether it is there, makes it again where it may be missing through no one's will, and goes on watching. Where it is missing
   * in the epoch in which it is known to have stood, it was removed; the store may be restored while we ask.
   */
  async #bring(key: string, value: string, stoodIn: number | undefined): Promise<void> {
    const { clock, closing } = this.#connection;
    const stop = new AbortController();
    this.#stops.set(key, () => stop.abort());
    let isToBe = stoodIn === undefined;
    for (let failures = 1; !stop.signal.aborted && !closing.aborted; failures += 1) {
      try {
        const answer = await this.#ask(key, value, isToBe, stop.signal);
        if (stop.signal.aborted) return;
        if (!isToBe && answer.epoch !== stoodIn) {
          isToBe = true;
          continue;
        }
        const isThere = answer.succeeded ? isToBe : firstKey(answer.results[0]) !== undefined;
        if (answer.succeeded && isToBe) log('%s was lost with the store and is made again', key);
        if (isThere) this.remember(key, value, answer.header.revision, answer.epoch);
        else this.forget(key);
        return;
      } catch (error) {
        if (closing.aborted || stop.signal.aborted) return;
        log('%s: %s', key, messageOf(error));
        await sleep(clock, backoffMs(RETRY, failures, clock.random()), closing).catch(() => {});
      }
    }
  }

  #ask(key: string, value: string, isToBe: boolean, signal: AbortSignal): Promise<InEpoch<TxnResult>> {
    const txn: Txn = {
      compares: [{ target: { key }, field: 'create', op: '=', operand: 0 }],
      success: isToBe ? [{ type: 'put', key, value }] : [],
      failure: [{ type: 'range', target: { key }, keysOnly: true }],
    };
    return this.#connection.txn(txn, { signal });
  }
}
