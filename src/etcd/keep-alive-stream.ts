/** One raw stream of etcd that renews leases. */
import type { ILeaseKeepAliveRequest, ILeaseKeepAliveResponse } from 'etcd3';
import type { KeepAliveObserver, KeepAliveStream } from '../core/store.ts';
import type { GrpcFailure } from './translate-error.ts';
import type { RawStream, Transport } from './transport.ts';

export class EtcdKeepAliveStream implements KeepAliveStream {
  readonly #transport: Transport;
  readonly #observer: KeepAliveObserver;
  readonly #stream: RawStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;
  #closed = false;

  constructor(transport: Transport, observer: KeepAliveObserver) {
    this.#transport = transport;
    this.#observer = observer;
    this.#stream = transport.stream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>('Lease', 'LeaseKeepAlive');
    this.#stream.on('data', ({ ID, TTL }) => {
      if (!this.#over) this.#observer.onAlive(ID, Number(TTL));
    });
    this.#stream.on('error', (failure) => this.#fail(failure));
    this.#stream.on('end', () => this.#fail({ message: 'etcd ended the keepalive stream' }));
  }

  send(leaseId: string): void {
    if (!this.#over) this.#stream.write({ ID: leaseId });
  }

  get #over(): boolean {
    return this.#closed || this.#transport.closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.release(this.#stream);
  }

  #fail(failure: GrpcFailure): void {
    if (this.#over) return;
    this.close();
    this.#observer.onEnd(this.#transport.translate(failure));
  }
}
