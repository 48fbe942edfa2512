/** The store on a real etcd: one endpoint at a time, one connection, which `connect` makes anew. */
import type { ILeaseGrantResponse, ILeaseTimeToLiveResponse, IRangeResponse, ITxnResponse } from 'etcd3';
import { type Clock, systemClock } from '../core/clock.ts';
import { ConnectionError, LeaseNotFoundError } from '../core/errors.ts';
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
import { type Dialed, dial } from './dial.ts';
import { type Endpoint, nextEndpoint } from './endpoints.ts';
import { EtcdKeepAliveStream } from './keep-alive-stream.ts';
import { rangeRequest, toHeader, toRangeResult, toTxnResult, txnRequest } from './messages.ts';
import { checkOptions, type EtcdStoreOptions } from './options.ts';
import type { Transport } from './transport.ts';
import { EtcdWatchStream } from './watch-stream.ts';

/** Throws InvalidOptionError for options that can never work. */
export class EtcdStore implements Store {
  readonly #options: EtcdStoreOptions;
  readonly #clock: Clock;
  #lastUrl: string | undefined;
  /** Proven by the last `connect`. */
  #transport: Transport | undefined;
  /** Of the `connect` under way. */
  #dialing: AbortController | undefined;
  #closed = false;

  constructor(options: EtcdStoreOptions) {
    checkOptions(options);
    this.#options = options;
    this.#clock = options.clock ?? systemClock();
  }

  get endpoint(): string {
    return this.#lastUrl ?? 'the hosts given';
  }

  async connect({ timeoutMs }: CallOptions): Promise<Header> {
    this.#drop('another connect() took its place');
    if (this.#closed) throw new ConnectionError('the store was closed');
    const dialing = new AbortController();
    this.#dialing = dialing;
    const timer = this.#clock.setTimeout(() => {
      dialing.abort(
        new ConnectionError(
          `${this.endpoint} did not answer within ${Math.round(timeoutMs)} ms: is etcd running there?`,
        ),
      );
    }, timeoutMs);
    try {
      const { transport, header } = await this.#dial(timeoutMs, dialing.signal);
      dialing.signal.throwIfAborted();
      this.#transport = transport;
      return header;
    } finally {
      timer.clear();
      if (this.#dialing === dialing) this.#dialing = undefined;
    }
  }

  async range(op: RangeOp, { timeoutMs }: CallOptions): Promise<RangeResult & { readonly header: Header }> {
    const response = await this.#proven().call<IRangeResponse>('KV', 'range', rangeRequest(op), timeoutMs);
    return { ...toRangeResult(response, op), header: toHeader(response.header) };
  }

  async txn(txn: Txn, { timeoutMs }: CallOptions): Promise<TxnResult> {
    const response = await this.#proven().call<ITxnResponse>('KV', 'txn', txnRequest(txn), timeoutMs);
    return toTxnResult(txn, response);
  }

  async leaseGrant(ttl: number, { timeoutMs }: CallOptions): Promise<Lease> {
    const { ID, TTL } = await this.#proven().call<ILeaseGrantResponse>('Lease', 'leaseGrant', { TTL: ttl }, timeoutMs);
    return { id: ID, ttl: Number(TTL) };
  }

  async leaseRevoke(id: string, { timeoutMs }: CallOptions): Promise<void> {
    try {
      await this.#proven().call('Lease', 'leaseRevoke', { ID: id }, timeoutMs);
    } catch (error) {
      if (!(error instanceof LeaseNotFoundError)) throw error;
    }
  }

  async leaseTimeToLive(id: string, withKeys: boolean, { timeoutMs }: CallOptions): Promise<LeaseStatus> {
    const request = { ID: id, keys: withKeys };
    const answer = await this.#proven().call<ILeaseTimeToLiveResponse>('Lease', 'leaseTimeToLive', request, timeoutMs);
    return {
      ttl: Number(answer.TTL),
      grantedTtl: Number(answer.grantedTTL),
      keys: answer.keys.map((key) => key.toString()),
    };
  }

  openWatch(observer: WatchObserver): WatchStream {
    const transport = this.#usable;
    return transport ? new EtcdWatchStream(transport, observer) : new UnopenedStream(observer, this.endpoint);
  }

  openKeepAlive(observer: KeepAliveObserver): KeepAliveStream {
    const transport = this.#usable;
    return transport ? new EtcdKeepAliveStream(transport, observer) : new UnopenedStream(observer, this.endpoint);
  }

  close(): void {
    this.#closed = true;
    this.#drop('the store was closed');
  }

  #drop(reason: string): void {
    this.#dialing?.abort(new ConnectionError(`connecting to ${this.endpoint} was given up: ${reason}`));
    this.#dialing = undefined;
    this.#transport?.close();
    this.#transport = undefined;
  }

  #dial(timeoutMs: number, signal: AbortSignal): Promise<Dialed> {
    const choose = (endpoints: readonly Endpoint[]) => {
      const start = Math.floor(this.#clock.random() * endpoints.length);
      const endpoint = nextEndpoint(endpoints, this.#lastUrl, start);
      this.#lastUrl = endpoint.url;
      return endpoint;
    };
    return dial(this.#options, choose, timeoutMs, signal);
  }

  get #usable(): Transport | undefined {
    return this.#transport?.lost ? undefined : this.#transport;
  }

  #proven(): Transport {
    const transport = this.#usable;
    if (transport === undefined) throw notConnected(this.endpoint);
    return transport;
  }
}

function notConnected(endpoint: string): ConnectionError {
  return new ConnectionError(`not connected to ${endpoint}`);
}

/** Stands for a stream that cannot be opened for want of a connection: it only ends. */
class UnopenedStream implements WatchStream, KeepAliveStream {
  #closed = false;

  constructor(observer: { onEnd(error: Error): void }, endpoint: string) {
    queueMicrotask(() => {
      if (!this.#closed) observer.onEnd(notConnected(endpoint));
    });
  }

  create(): void {}
  cancel(): void {}
  send(): void {}

  close(): void {
    this.#closed = true;
  }
}
