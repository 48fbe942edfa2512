import type { EphemeralError } from '../core/errors.ts';

interface Waiter {
  readonly version: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Who waits for the store to have a value, each for its version or a newer one. */
export class Confirmations {
  readonly #waiters = new Set<Waiter>();
  #confirmed = 0;
  /** Why it is over, for whoever asks after its end. Made when asked for: an error, with its stack, is dear, and most have no waiter. */
  #ending: (() => EphemeralError) | undefined;

  when(version: number): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#confirmed >= version) resolve();
      else if (this.#ending) reject(this.#ending());
      else this.#waiters.add({ version, resolve, reject });
    });
  }

  /** The store has this version. */
  confirm(version: number): void {
    this.#confirmed = Math.max(this.#confirmed, version);
    for (const waiter of [...this.#waiters]) {
      if (waiter.version > version) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** The store will not have this version. */
  refuse(version: number, error: EphemeralError): void {
    this.#reject(
      () => error,
      (waiter) => waiter.version === version,
    );
  }

  /** Nobody is to wait from here on, nor those who come later. */
  end(error: () => EphemeralError): void {
    this.#ending ??= error;
    this.#reject(error, () => true);
  }

  #reject(error: () => EphemeralError, isMeant: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      if (!isMeant(waiter)) continue;
      this.#waiters.delete(waiter);
      waiter.reject(error());
    }
  }
}
