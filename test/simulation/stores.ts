import type {
  CallOptions,
  Header,
  KeepAliveObserver,
  KeepAliveStream,
  Lease,
  LeaseStatus,
  RangeOp,
  RangeResult,
  Store,
  Txn,
  TxnResult,
  WatchObserver,
  WatchStream,
} from '../../src/core/store.ts';
import type { EventLoop } from './event-loop.ts';

/** More calls at one instant are a loop that waits for nothing. */
const MAX_CALLS_AT_ONCE = 2_000;

/** A store that passes everything on. */
export class PassingStore implements Store {
  constructor(protected readonly inner: Store) {}

  get endpoint(): string {
    return this.inner.endpoint;
  }

  connect(options: CallOptions): Promise<Header> {
    return this.inner.connect(options);
  }

  range(op: RangeOp, options: CallOptions): Promise<RangeResult & { readonly header: Header }> {
    return this.inner.range(op, options);
  }

  txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    return this.inner.txn(txn, options);
  }

  leaseGrant(ttl: number, options: CallOptions): Promise<Lease> {
    return this.inner.leaseGrant(ttl, options);
  }

  leaseRevoke(id: string, options: CallOptions): Promise<void> {
    return this.inner.leaseRevoke(id, options);
  }

  leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus> {
    return this.inner.leaseTimeToLive(id, withKeys, options);
  }

  openWatch(observer: WatchObserver): WatchStream {
    return this.inner.openWatch(observer);
  }

  openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    return this.inner.openKeepAlive(observer);
  }

  close(): void {
    this.inner.close();
  }
}

/** All that a store says reaches the process through its event loop; the process's streams are counted. */
export class ProcessStore extends PassingStore {
  readonly #loop: EventLoop;
  /** Streams open now. */
  streams = 0;
  /** A deaf process hears no watch events for a while, though everything else works (a stuck watch, etcd#9569). */
  #deafness: (() => void)[] | undefined;
  readonly #onRunaway: () => void;
  #calls = 0;
  #callsAtMs = 0;

  constructor(inner: Store, loop: EventLoop, onRunaway: () => void) {
    super(inner);
    this.#loop = loop;
    this.#onRunaway = onRunaway;
  }

  setDeaf(isDeaf: boolean): void {
    if (isDeaf) this.#deafness ??= [];
    else {
      const missed = this.#deafness ?? [];
      this.#deafness = undefined;
      for (const run of missed) this.#loop.pass(run);
    }
  }

  override connect(options: CallOptions): Promise<Header> {
    return this.#enter(() => this.inner.connect(options));
  }

  override range(op: RangeOp, options: CallOptions): Promise<RangeResult & { readonly header: Header }> {
    return this.#enter(() => this.inner.range(op, options));
  }

  override txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    return this.#enter(() => this.inner.txn(txn, options));
  }

  override leaseGrant(ttl: number, options: CallOptions): Promise<Lease> {
    return this.#enter(() => this.inner.leaseGrant(ttl, options));
  }

  override leaseRevoke(id: string, options: CallOptions): Promise<void> {
    return this.#enter(() => this.inner.leaseRevoke(id, options));
  }

  override leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus> {
    return this.#enter(() => this.inner.leaseTimeToLive(id, withKeys, options));
  }

  override openWatch(observer: WatchObserver): WatchStream {
    const life = this.#openStream();
    const stream = this.inner.openWatch({
      onCreated: (id) => life.enter(() => observer.onCreated(id)),
      onEvents: (id, events) => {
        const deliver = () => life.enter(() => observer.onEvents(id, events));
        if (this.#deafness) this.#deafness.push(deliver);
        else deliver();
      },
      onCanceled: (id, error) => life.enter(() => observer.onCanceled(id, error)),
      onEnd: (error) => life.end(() => observer.onEnd(error)),
    });
    return {
      create: (id, request) => stream.create(id, request),
      cancel: (id) => stream.cancel(id),
      close: () => {
        life.close();
        stream.close();
      },
    };
  }

  override openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    const life = this.#openStream();
    const stream = this.inner.openKeepAlive({
      onAlive: (id, ttl) => life.enter(() => observer.onAlive(id, ttl)),
      onEnd: (error) => life.end(() => observer.onEnd(error)),
    });
    return {
      send: (id) => stream.send(id),
      close: () => {
        life.close();
        stream.close();
      },
    };
  }

  #enter<T>(call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isRunaway()) return;
      call().then(
        (result) => this.#loop.pass(() => resolve(result)),
        (error: unknown) => this.#loop.pass(() => reject(error)),
      );
    });
  }

  /** Calls without end while no time passes would end in a heap full of promises. */
  #isRunaway(): boolean {
    const nowMs = this.#loop.now();
    this.#calls = nowMs === this.#callsAtMs ? this.#calls + 1 : 0;
    this.#callsAtMs = nowMs;
    if (this.#calls < MAX_CALLS_AT_ONCE) return false;
    this.#onRunaway();
    return true;
  }

  #openStream() {
    this.streams += 1;
    let isOpen = true;
    const close = () => {
      if (isOpen) this.streams -= 1;
      isOpen = false;
    };
    const enter = (run: () => void) =>
      this.#loop.pass(() => {
        if (isOpen) run();
      });
    const end = (run: () => void) =>
      enter(() => {
        close();
        run();
      });
    return { close, enter, end };
  }
}
