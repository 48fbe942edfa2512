/** Many watches on one raw stream of etcd. */
import type { IWatchRequest } from 'etcd3';
import { CompactedError, ConnectionError, UnauthenticatedError } from '../core/errors.ts';
import type { WatchObserver, WatchRequest, WatchStream } from '../core/store.ts';
import { keyRange } from './messages.ts';
import type { GrpcFailure } from './translate-error.ts';
import type { RawStream, Transport } from './transport.ts';
import { decodeWatchResponse, type WatchResponse } from './watch-response.ts';

/** For the one call that tells a stale token from a missing permission. */
const TOKEN_CHECK_TIMEOUT_MS = 3_000;

interface Watch {
  readonly id: number;
  readonly wireId: number;
  readonly request: WatchRequest;
}

/**
 * On the wire each watch has a number of its own that is never used twice, so that what is on its way for a cancelled watch is not
 * taken for another one's.
 */
export class EtcdWatchStream implements WatchStream {
  readonly #transport: Transport;
  readonly #observer: WatchObserver;
  readonly #stream: RawStream<IWatchRequest, WatchResponse>;
  readonly #token: string | undefined;
  readonly #byWireId = new Map<number, Watch>();
  readonly #byId = new Map<number, Watch>();
  /** Etcd answers creations in their order, and refusals without an id. */
  readonly #creating: Watch[] = [];
  #lastWireId = 0;
  #closed = false;

  constructor(transport: Transport, observer: WatchObserver) {
    this.#transport = transport;
    this.#observer = observer;
    this.#token = transport.token;
    this.#stream = transport.stream<IWatchRequest, WatchResponse>('Watch', 'Watch', decodeWatchResponse);
    this.#stream.on('data', (response) => this.#receive(response));
    this.#stream.on('error', (failure) => this.#fail(failure));
    this.#stream.on('end', () => this.#fail({ message: 'etcd ended the watch stream' }));
  }

  create(id: number, request: WatchRequest): void {
    if (this.#over) return;
    this.#lastWireId += 1;
    const watch = { id, wireId: this.#lastWireId, request };
    this.#byWireId.set(watch.wireId, watch);
    this.#byId.set(id, watch);
    this.#creating.push(watch);
    this.#stream.write({
      create_request: {
        ...keyRange(request.target),
        start_revision: request.startRevision,
        watch_id: String(watch.wireId),
      },
    });
  }

  cancel(id: number): void {
    const watch = this.#byId.get(id);
    if (watch === undefined) return;
    this.#forget(watch);
    if (!this.#over) this.#stream.write({ cancel_request: { watch_id: String(watch.wireId) } });
  }

  get #over(): boolean {
    return this.#closed || this.#transport.closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.release(this.#stream);
  }

  #receive(response: WatchResponse): void {
    if (this.#over) return;
    if (response.created) {
      const watch = this.#creating.shift();
      if (watch === undefined || this.#byWireId.get(watch.wireId) !== watch) return;
      if (response.canceled) this.#refuse(watch, response.cancelReason);
      else this.#observer.onCreated(watch.id);
      return;
    }
    const watch = this.#byWireId.get(response.watchId);
    if (watch === undefined) return;
    if (response.events.length > 0) this.#observer.onEvents(watch.id, response.events);
    if (!response.canceled) return;
    this.#forget(watch);
    const { compactRevision } = response;
    this.#observer.onCanceled(
      watch.id,
      compactRevision > 0 ? new CompactedError(compactRevision) : this.#reason(response.cancelReason),
    );
  }

  /** Etcd 3.4 calls a token that has run out "permission denied": a read with it tells. */
  #refuse(watch: Watch, reason: string): void {
    const error = this.#reason(reason);
    if (!this.#transport.authenticates) {
      this.#forget(watch);
      this.#observer.onCanceled(watch.id, error);
      return;
    }
    this.#checkToken(watch).then(
      () => {
        if (this.#over || this.#byWireId.get(watch.wireId) !== watch) return;
        if (this.#transport.token !== this.#token) {
          this.#end(new UnauthenticatedError(`the token of the watches at ${this.#transport.endpoint} has run out`));
          return;
        }
        this.#forget(watch);
        this.#observer.onCanceled(watch.id, error);
      },
      (failure: Error) => this.#end(failure),
    );
  }

  /** Renews the transport's token when it is stale. Rejects only when that cannot be found out. */
  async #checkToken({ request }: Watch): Promise<void> {
    const read = { ...keyRange(request.target), limit: 1, keys_only: true, serializable: true };
    try {
      await this.#transport.call('KV', 'range', read, TOKEN_CHECK_TIMEOUT_MS);
    } catch (error) {
      if (error instanceof ConnectionError || error instanceof UnauthenticatedError) throw error;
    }
  }

  #reason(reason: string): Error {
    return this.#transport.translate({ code: 9, details: reason || 'etcd cancelled the watch' });
  }

  #forget(watch: Watch): void {
    this.#byWireId.delete(watch.wireId);
    if (this.#byId.get(watch.id) === watch) this.#byId.delete(watch.id);
  }

  #fail(failure: GrpcFailure): void {
    if (!this.#over) this.#end(this.#transport.translate(failure));
  }

  #end(error: Error): void {
    if (this.#over) return;
    this.close();
    this.#observer.onEnd(error);
  }
}
