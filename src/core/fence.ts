import type { Connection, InEpoch } from './connection.ts';
import { ConnectionError, EphemeralError } from './errors.ts';
import { messageOf } from './log.ts';
import type { Txn, TxnResult } from './store.ts';

/** A write whose outcome is not known, or which the fence stopped. `settle` first, then read, then decide again. */
export class UnsettledWriteError extends EphemeralError {
  readonly code = 'UNSETTLED_WRITE';
  override readonly retryable = true;

  constructor(
    readonly fence: number,
    cause: unknown,
  ) {
    super(`a write's outcome is not known: ${messageOf(cause)}`, { cause });
  }
}

/** The fence's key is not there: its lease was revoked, or someone deleted it. */
export class FenceGoneError extends EphemeralError {
  readonly code = 'FENCE_GONE';
  override readonly retryable = true;
}

/**
 * A key on the session's lease whose mod revision every write of the session compares. After a write whose outcome is unknown it
 * is written again, so that the write, should it still be on its way, can no longer take effect.
 *
 * Within an epoch the value known here only rises; so when it differs from the value that a write carried, the store has moved on
 * from that one for good.
 */
export class Fence {
  readonly #connection: Connection;
  readonly #key: string;
  readonly #leaseId: string;
  #value = 0;
  #nonce = 0;
  #raising: Promise<void> | undefined;

  constructor(connection: Connection, key: string, leaseId: string) {
    this.#connection = connection;
    this.#key = key;
    this.#leaseId = leaseId;
  }

  /**
   * A write, done only while the fence stands; the results are those of the caller's own operations.
   * @throws UnsettledWriteError, FenceGoneError, or what the store says (then nothing was written)
   */
  async write(txn: Txn, mayStill: () => void): Promise<InEpoch<TxnResult>> {
    const { callOptions } = this.#connection;
    let used = this.#value;
    let epoch = 0;
    try {
      const answer = await this.#connection.attempt((store, link) => {
        mayStill();
        used = this.#value;
        epoch = link.epoch;
        return store.txn(
          {
            compares: [{ target: { key: this.#key }, field: 'mod', op: '=', operand: used }, ...txn.compares],
            success: txn.success,
            failure: [{ type: 'range', target: { key: this.#key }, keysOnly: true }, ...(txn.failure ?? [])],
          },
          callOptions,
        );
      });
      this.#connection.heard(answer.header.revision);
      if (answer.succeeded) return { ...answer, epoch };
      const [own, ...results] = answer.results;
      this.#check(used, own?.type === 'range' ? own.kvs[0]?.modRevision : undefined);
      return { ...answer, results, epoch };
    } catch (error) {
      if (error instanceof ConnectionError) throw new UnsettledWriteError(used, error);
      throw error;
    }
  }

  /** Resolves when no write that carried this value can take effect any more. */
  async settle(used: number): Promise<void> {
    while (this.#value === used) await this.raise();
  }

  /** Writes the fence anew. */
  raise(): Promise<void> {
    this.#raising ??= this.#raise().finally(() => {
      this.#raising = undefined;
    });
    return this.#raising;
  }

  async #raise(): Promise<void> {
    this.#nonce += 1;
    const answer = await this.#connection.txn({
      compares: [],
      success: [{ type: 'put', key: this.#key, value: String(this.#nonce), lease: this.#leaseId }],
    });
    this.#value = Math.max(this.#value, answer.header.revision);
  }

  #check(used: number, stored: number | undefined): void {
    if (stored === used || (stored === undefined && used === 0)) return;
    if (stored === undefined) throw new FenceGoneError("the session's fence is gone");
    // A raise of ours that we had given up on came in late. No write ever carried its value.
    this.#value = Math.max(this.#value, stored);
    throw new UnsettledWriteError(used, new Error('the fence moved on'));
  }
}
