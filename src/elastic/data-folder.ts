import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toHex } from './ids.ts';
import { makeFolder } from './new-folder.ts';

/** The folder that holds etcd's data beside our lock and what was archived. */
export class DataFolder {
  readonly path: string;
  readonly etcd: string;
  readonly lock: string;
  readonly #unmake: () => void;

  constructor(path: string) {
    this.path = path;
    this.etcd = join(path, 'etcd');
    this.lock = join(path, 'agent.lock');
    this.#unmake = makeFolder(path);
  }

  /** After a start that failed: if it was the first one here, and nothing came of it, no trace is left. */
  discardUnused(): void {
    this.#unmake();
  }

  /** Whether an etcd would start as the member whose log lies here, whatever else it is told. */
  get hasLog(): boolean {
    const wal = join(this.etcd, 'member', 'wal');
    return existsSync(wal) && readdirSync(wal).some((name) => name.endsWith('.wal'));
  }

  /** What a removed member leaves is kept, under a name that no etcd starts from. */
  archive(memberId: string): void {
    if (!existsSync(this.etcd)) return;
    const name = `removed-${toHex(memberId)}`;
    const target = [name, ...Array.from({ length: 99 }, (_, n) => `${name}.${n + 1}`)].find(
      (one) => !existsSync(join(this.path, one)),
    );
    renameSync(this.etcd, join(this.path, target ?? `${name}.${Date.now()}`));
  }

  /** For a member that is about to begin: what lies here without a log is the trace of a start that failed. */
  clear(): void {
    rmSync(this.etcd, { recursive: true, force: true });
  }
}
