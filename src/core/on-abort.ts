/**
 * Who waits for each signal. Node takes more than ten listeners on one for a leak, and says so on the user's stderr; so a signal,
 * however many calls it is given to, gets one of ours.
 */
const waiting = new WeakMap<AbortSignal, Waiting>();

/** Calls back when the signal is aborted, which it must not be yet. Returns the function that takes that back. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let all = waiting.get(signal);
  if (!all) {
    all = new Waiting(signal);
    waiting.set(signal, all);
  }
  return all.add(callback);
}

class Waiting {
  readonly #signal: AbortSignal;
  readonly #calls = new Set<() => void>();
  readonly #fire = () => {
    waiting.delete(this.#signal);
    for (const call of [...this.#calls]) {
      if (this.#calls.has(call)) call();
    }
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#fire, { once: true });
  }

  add(callback: () => void): () => void {
    // A function of its own, as one and the same may be given twice.
    const call = () => callback();
    this.#calls.add(call);
    return () => {
      if (!this.#calls.delete(call) || this.#calls.size > 0 || waiting.get(this.#signal) !== this) return;
      // Nothing is left on a signal that outlives what it was given to.
      waiting.delete(this.#signal);
      this.#signal.removeEventListener('abort', this.#fire);
    };
  }
}
