/** The store's history by another client than ours: etcdctl, whose watch is the reference, one straight at each member. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { bindToThisProcess } from '../support/children.ts';
import { etcdctlBinary } from '../support/etcd-process.ts';
import type { History } from './history.ts';

interface WatchAnswer {
  readonly Header: { readonly revision: number };
  readonly Events: readonly {
    readonly type?: number;
    readonly kv: {
      readonly key: string;
      readonly value?: string;
      readonly create_revision?: number;
      readonly mod_revision: number;
    };
  }[];
}

const AGAIN_MS = 300;

const text = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString();

export class Recorder {
  readonly #history: History;
  readonly #endpoint: string;
  #child: ChildProcess | undefined;
  #cursor = 0;
  #isStopped = false;
  /** Up to here the store has forgotten. */
  compacted = 0;

  constructor(history: History, endpoint: string) {
    this.#history = history;
    this.#endpoint = endpoint;
  }

  start(): void {
    const from = String(Math.max(this.#cursor, this.compacted) + 1);
    const args = ['--endpoints', this.#endpoint, 'watch', '--prefix', '', '--rev', from, '-w', 'json'];
    const child = spawn(etcdctlBinary(), args, {
      env: { ...process.env, ETCDCTL_API: '3' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#child = child;
    bindToThisProcess(child);
    createInterface(child.stdout).on('line', (line) => this.#heard(line));
    // A watch that was refused, as after a compaction, ends it.
    child.once('close', () => {
      if (!this.#isStopped) setTimeout(() => this.#isStopped || this.start(), AGAIN_MS);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#child?.kill('SIGKILL');
  }

  #heard(line: string): void {
    if (!line.startsWith('{')) return;
    const { Events: events } = JSON.parse(line) as WatchAnswer;
    const atMs = Date.now();
    for (const { type, kv } of events ?? []) {
      const isDeleted = type === 1;
      this.#history.add({
        key: text(kv.key),
        revision: kv.mod_revision,
        atMs,
        value: isDeleted ? undefined : text(kv.value),
        created: kv.create_revision ?? 0,
      });
      this.#cursor = Math.max(this.#cursor, kv.mod_revision);
    }
    // The events' own, not the header's, which is ahead while a watch catches up.
    this.#history.reached(this.#cursor);
  }
}
