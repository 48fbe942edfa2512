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
  WatchRequest,
  WatchStream,
} from '../../src/core/store.ts';

/** A store that counts what passes between one client and the server. */
export class CountingStore implements Store {
  /** Calls with one answer, each a message either way; proving a connection is one. */
  calls = 0;
  connects = 0;
  keepAlives = 0;
  /** Messages with events, and the events in them. */
  eventMessages = 0;
  events = 0;
  watchRequests: WatchRequest[] = [];
  watchStreams = 0;
  keepAliveStreams = 0;
  /** Watches made and not ended. */
  readonly openWatches = new Map<number, WatchRequest>();
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  get endpoint(): string {
    return this.#store.endpoint;
  }

  /** What the client hears that is no answer to a keepalive. */
  get heard(): number {
    return this.calls + this.eventMessages;
  }

  connect(options: CallOptions): Promise<Header> {
    this.calls += 1;
    this.connects += 1;
    return this.#store.connect(options);
  }

  range(op: RangeOp, options: CallOptions): Promise<RangeResult & { readonly header: Header }> {
    this.calls += 1;
    return this.#store.range(op, options);
  }

  txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    this.calls += 1;
    return this.#store.txn(txn, options);
  }

  leaseGrant(ttl: number, options: CallOptions): Promise<Lease> {
    this.calls += 1;
    return this.#store.leaseGrant(ttl, options);
  }

  leaseRevoke(id: string, options: CallOptions): Promise<void> {
    this.calls += 1;
    return this.#store.leaseRevoke(id, options);
  }

  leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus> {
    this.calls += 1;
    return this.#store.leaseTimeToLive(id, withKeys, options);
  }

  openWatch(observer: WatchObserver): WatchStream {
    this.watchStreams += 1;
    const stream = this.#store.openWatch({
      onCreated: (id) => observer.onCreated(id),
      onEvents: (id, events) => {
        this.eventMessages += 1;
        this.events += events.length;
        observer.onEvents(id, events);
      },
      onCanceled: (id, error) => {
        this.openWatches.delete(id);
        observer.onCanceled(id, error);
      },
      onEnd: (error) => {
        this.openWatches.clear();
        observer.onEnd(error);
      },
    });
    return {
      create: (id, request) => {
        this.watchRequests.push(request);
        this.openWatches.set(id, request);
        stream.create(id, request);
      },
      cancel: (id) => {
        this.openWatches.delete(id);
        stream.cancel(id);
      },
      close: () => {
        this.openWatches.clear();
        stream.close();
      },
    };
  }

  openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    this.keepAliveStreams += 1;
    const stream = this.#store.openKeepAlive(observer);
    return {
      send: (leaseId) => {
        this.keepAlives += 1;
        stream.send(leaseId);
      },
      close: () => stream.close(),
    };
  }

  close(): void {
    this.openWatches.clear();
    this.#store.close();
  }
}
