/** A set of callbacks. Callbacks may be added and taken off while it calls. */
export class Listeners<A extends readonly unknown[]> {
  readonly #callbacks = new Set<(...args: A) => void>();

  /** Returns the function that takes it off again. */
  add(callback: (...args: A) => void): () => void {
    this.#callbacks.add(callback);
    return () => this.#callbacks.delete(callback);
  }

  call(...args: A): void {
    for (const callback of [...this.#callbacks]) {
      if (this.#callbacks.has(callback)) callback(...args);
    }
  }

  get size(): number {
    return this.#callbacks.size;
  }

  clear(): void {
    this.#callbacks.clear();
  }
}
