import { ListWatch } from '../core/list-watch.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { Compare, WatchEvent } from '../core/store.ts';
import { Directory } from './directory.ts';
import type { Reader, ReaderContext, ReaderEvents, View } from './reader.ts';

/** Follows a directory from its own keys: hears every refresh of every child. */
export class DirectReader implements Reader {
  readonly #context: ReaderContext;
  readonly #events: ReaderEvents;
  readonly #listWatch: ListWatch;
  #directory: Directory | undefined;
  #epoch = 0;

  constructor(context: ReaderContext, events: ReaderEvents) {
    this.#context = context;
    this.#events = events;
    const { connection, hub, directory, withValues, telemetry } = context;
    this.#listWatch = new ListWatch(
      connection,
      hub,
      [{ prefix: directory.children }, { prefix: directory.addedBelow }],
      { keysOnly: !withValues, beside: [directory.added, directory.self ?? directory.added] },
      {
        onSnapshot: (snapshot, epoch) => this.#read(snapshot, epoch),
        onEvents: (target, batch) => this.#heard(target, batch),
        onRefused: (error) => events.onRefused(error),
        onRelist: () => telemetry.count('list.relists'),
      },
    );
  }

  get view(): View | undefined {
    const directory = this.#directory;
    return directory && { children: directory.children, revisions: directory.revisions, epoch: this.#epoch };
  }

  async isCurrent(): Promise<boolean> {
    const directory = this.#directory;
    if (!directory) return false;
    const { connection, directory: at } = this.#context;
    const { revisions, counts } = directory;
    // No key is newer than what was heard, and none is missing.
    const notNewer = (prefix: string, revision: number): Compare => ({
      target: { prefix },
      field: 'mod',
      op: '<',
      operand: revision + 1,
    });
    const answer = await connection.txn({
      compares: [notNewer(at.children, revisions.keys), notNewer(at.addedBelow, revisions.dirs)],
      success: [at.children, at.addedBelow].map((prefix) => ({ type: 'range', target: { prefix }, countOnly: true })),
    });
    const [keys, dirs] = answer.results.map((result) => (result.type === 'range' ? result.count : -1));
    return answer.succeeded && keys === counts.keys && dirs === counts.dirs && answer.epoch === this.#epoch;
  }

  async close(): Promise<void> {
    this.#listWatch.close();
  }

  #read(snapshot: Snapshot, epoch: number): void {
    const { directory: keys, withValues } = this.#context;
    const [children = [], dirs = [], added = [], self = []] = snapshot.targets;
    const now = { keys: snapshot.revision, dirs: snapshot.revision };
    const directory = new Directory({ keys: keys.children, dirs: keys.addedBelow }, withValues, now);
    directory.load('keys', children);
    directory.load('dirs', dirs);
    this.#context.telemetry.count('list.invalidKeys', directory.takeUnnameable());
    this.#directory = directory;
    this.#epoch = epoch;
    this.#events.onRead({ isAdded: added.length > 0, isKey: keys.self !== undefined && self.length > 0 });
  }

  #heard(target: number, batch: readonly WatchEvent[]): void {
    const directory = this.#directory;
    if (!directory) return;
    this.#context.telemetry.count('list.messages');
    let changed = false;
    for (const event of batch) {
      if (directory.apply(target === 0 ? 'keys' : 'dirs', event) !== undefined) changed = true;
    }
    this.#context.telemetry.count('list.invalidKeys', directory.takeUnnameable());
    if (changed) this.#events.onChanged();
  }
}
