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
} from '../core/store.ts';
import type { Model } from './model.ts';
import type { Transport } from './transport.ts';
import { isWrite } from './txn-rules.ts';

/** What a client reaches at the other end of its transport. */
export interface MemoryService {
  readonly model: Model;
  nowMs(): number;
  grant(ttl: number): Lease;
  openWatch(transport: Transport, observer: WatchObserver): WatchStream;
  openKeepAlive(transport: Transport, observer: KeepAliveObserver): KeepAliveStream;
}

/** One client of a MemoryServer. */
export class MemoryStore implements Store {
  constructor(
    readonly transport: Transport,
    private readonly service: MemoryService,
  ) {}

  get endpoint(): string {
    return this.transport.endpoint;
  }

  connect({ timeoutMs }: CallOptions): Promise<Header> {
    return this.transport.connect(timeoutMs, () => this.service.model.header);
  }

  range(op: RangeOp, options: CallOptions): Promise<RangeResult & { readonly header: Header }> {
    const { model } = this.service;
    return this.#read(options, () => ({ ...model.range(op), header: model.header }));
  }

  txn(txn: Txn, options: CallOptions): Promise<TxnResult> {
    const writes = txn.success.some(isWrite) || (txn.failure ?? []).some(isWrite);
    return this.transport.call(options.timeoutMs, writes, () => this.service.model.txn(txn));
  }

  leaseGrant(ttl: number, options: CallOptions): Promise<Lease> {
    return this.#write(options, () => this.service.grant(ttl));
  }

  leaseRevoke(id: string, options: CallOptions): Promise<void> {
    return this.#write(options, () => this.service.model.revoke(id));
  }

  leaseTimeToLive(id: string, withKeys: boolean, options: CallOptions): Promise<LeaseStatus> {
    return this.#read(options, () => this.service.model.timeToLive(id, withKeys, this.service.nowMs()));
  }

  openWatch(observer: WatchObserver): WatchStream {
    return this.service.openWatch(this.transport, observer);
  }

  openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    return this.service.openKeepAlive(this.transport, observer);
  }

  close(): void {
    this.transport.close();
  }

  #read<T>({ timeoutMs }: CallOptions, work: () => T): Promise<T> {
    return this.transport.call(timeoutMs, false, work);
  }

  #write<T>({ timeoutMs }: CallOptions, work: () => T): Promise<T> {
    return this.transport.call(timeoutMs, true, work);
  }
}
