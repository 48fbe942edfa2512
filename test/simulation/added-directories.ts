import type { WatchEvent } from '../../src/core/store.ts';
import type { KeyTree } from '../../src/memory/key-tree.ts';
import type { Process } from './records.ts';

/** Which directories are to be there, whatever becomes of the store: those that a living client has added and nobody removed. */
export class AddedDirectories {
  /** Who made what stands there. */
  readonly #makers = new Map<string, Process>();
  readonly #wanted = new Map<string, Set<Process>>();

  committed({ type, kv }: WatchEvent, by: Process | undefined): void {
    if (type === 'put' && by) this.#makers.set(kv.key, by);
    else this.#makers.delete(kv.key);
    if (type === 'delete') this.#wanted.delete(kv.key);
  }

  restored(): void {
    this.#makers.clear();
  }

  /** A call of this process's that added it has been answered. */
  added(key: string, process: Process): void {
    // What was removed before the answer came is not to be there.
    if (this.#makers.get(key) === process) this.#wanted.set(key, (this.#wanted.get(key) ?? new Set()).add(process));
  }

  /** This process asks for it to be removed. */
  removing(key: string, process: Process): void {
    this.#wanted.get(key)?.delete(process);
  }

  missing(keys: KeyTree): string | undefined {
    const isMissing = ([key, by]: readonly [string, ReadonlySet<Process>]) =>
      !keys.get(key) && [...by].some(({ state }) => state === 'open');
    return [...this.#wanted].find(isMissing)?.[0];
  }
}
