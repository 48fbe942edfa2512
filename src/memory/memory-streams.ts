import { CompactedError } from '../core/errors.ts';
import type {
  KeepAliveObserver,
  KeepAliveStream,
  Target,
  WatchEvent,
  WatchObserver,
  WatchRequest,
  WatchStream,
} from '../core/store.ts';
import type { Commit } from './commit-log.ts';
import type { Exchange } from './exchange.ts';
import { targetHas } from './key-tree.ts';
import type { Model } from './model.ts';
import type { Transport } from './transport.ts';

/** While a watch catches up, etcd puts the events of so many revisions into one message (`watchBatchMaxRevs`). */
const CATCH_UP_REVISIONS = 1_000;

interface Watch {
  readonly id: number;
  readonly target: Target;
  nextRevision: number;
}

/** Both ends of a watch stream: the client's methods, and the server's list of watches, which commits are shown to. */
export class MemoryWatchStream implements WatchStream {
  /** The client's view; what is on its way for a cancelled watch is not taken for a new one of the same id. */
  readonly #wanted = new Map<number, Watch>();
  /** The server's. */
  readonly #served = new Set<Watch>();
  readonly #exchange: Exchange;

  constructor(
    transport: Transport,
    private readonly model: Model,
    private readonly observer: WatchObserver,
    sessions: Set<MemoryWatchStream>,
  ) {
    this.#exchange = transport.openStream((error) => observer.onEnd(error));
    this.#exchange.onDetached = () => sessions.delete(this);
    this.#request(() => sessions.add(this));
  }

  create(id: number, { target, startRevision }: WatchRequest): void {
    const watch = { id, target, nextRevision: startRevision };
    this.#wanted.set(id, watch);
    this.#request(() => this.#start(watch));
  }

  cancel(id: number): void {
    const watch = this.#wanted.get(id);
    if (!watch) return;
    this.#wanted.delete(id);
    this.#request(() => this.#served.delete(watch));
  }

  close(): void {
    this.#exchange.end();
  }

  /** The server shows a commit to every watch on the stream. */
  commit(commit: Commit): void {
    for (const watch of this.#served) this.#send(watch, [commit]);
  }

  #start(watch: Watch): void {
    this.#reply('reply', watch, () => this.observer.onCreated(watch.id));
    // etcd takes 0 for "from now on".
    if (watch.nextRevision <= 0) watch.nextRevision = this.model.header.revision + 1;
    try {
      const commits = this.model.since(watch.nextRevision);
      this.#served.add(watch);
      for (let i = 0; i < commits.length; i += CATCH_UP_REVISIONS) {
        this.#send(watch, commits.slice(i, i + CATCH_UP_REVISIONS));
      }
    } catch (error) {
      if (!(error instanceof CompactedError)) throw error;
      this.#reply('event', watch, () => {
        this.#wanted.delete(watch.id);
        this.observer.onCanceled(watch.id, error);
      });
    }
  }

  #send(watch: Watch, commits: readonly Commit[]): void {
    const events: WatchEvent[] = [];
    for (const commit of commits) {
      if (commit.revision < watch.nextRevision) continue;
      watch.nextRevision = commit.revision + 1;
      for (const event of commit.events) if (targetHas(watch.target, event.kv.key)) events.push(event);
    }
    if (events.length > 0) this.#reply('event', watch, () => this.observer.onEvents(watch.id, events));
  }

  /** What arrives after the end of the stream has no one to serve. */
  #request(work: () => void): void {
    this.#exchange.request(() => {
      if (this.#exchange.attached) work();
    });
  }

  #reply(kind: 'reply' | 'event', watch: Watch, deliver: () => void): void {
    this.#exchange.reply(kind, () => {
      if (this.#wanted.get(watch.id) === watch) deliver();
    });
  }
}

export class MemoryKeepAliveStream implements KeepAliveStream {
  readonly #exchange: Exchange;

  constructor(
    transport: Transport,
    private readonly observer: KeepAliveObserver,
    private readonly keepAlive: (leaseId: string) => number,
  ) {
    this.#exchange = transport.openStream((error) => observer.onEnd(error));
    this.#exchange.request(() => undefined);
  }

  send(leaseId: string): void {
    this.#exchange.request(() => {
      const ttl = this.keepAlive(leaseId);
      this.#exchange.reply('reply', () => this.observer.onAlive(leaseId, ttl));
    });
  }

  close(): void {
    this.#exchange.end();
  }
}
