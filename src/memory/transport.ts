import { ConnectionError } from '../core/errors.ts';
import { Connection, Exchange, type Lane, type Network } from './exchange.ts';

/** A client's way to the server, and what can be wrong with it. */
export class Transport {
  partitioned = false;
  crashed = false;
  closed = false;
  /** So many writes to come are lost on their way to the server. */
  lostRequests = 0;
  /** So many writes to come are done, and their answers lost. */
  lostReplies = 0;
  readonly held = new Set<Lane>();
  #connection = new Connection();
  readonly #frozen = new Set<Connection>();

  constructor(
    readonly name: string,
    readonly network: Network,
  ) {}

  get endpoint(): string {
    return `memory://${this.name}`;
  }

  /** A stream; `onFailed` hears its end unless the client ends it itself. */
  openStream(onFailed: (error: ConnectionError) => void): Exchange {
    return this.#open('stream', onFailed);
  }

  /** A call that `work` answers, on the server. */
  call<T>(timeoutMs: number, writes: boolean, work: () => T): Promise<T> {
    if (this.crashed) return new Promise(() => undefined);
    if (this.closed) return Promise.reject(new ConnectionError(`${this.endpoint}: closed`, { retryable: false }));
    return new Promise((resolve, reject) => {
      const exchange = this.#open('call', (error) => {
        timer.clear();
        reject(error);
      });
      const timer = this.network.clock.setTimeout(() => exchange.fail(`no answer within ${timeoutMs} ms`), timeoutMs);
      const answer = (settle: () => void) =>
        exchange.reply('reply', () => {
          timer.clear();
          exchange.end();
          settle();
        });
      exchange.request(() => {
        if (writes && this.lostRequests > 0) {
          this.lostRequests--;
          return exchange.reset();
        }
        let settle: () => void;
        try {
          const result = work();
          settle = () => resolve(result);
        } catch (error) {
          settle = () => reject(error);
        }
        if (!writes || this.lostReplies === 0) return answer(settle);
        this.lostReplies--;
        exchange.reset();
      });
    });
  }

  /** The client takes a new connection. Its calls fail, its streams end without a word. */
  reconnect(): void {
    const dropped = this.#replaceConnection();
    for (const exchange of dropped) {
      if (exchange.kind === 'call') exchange.fail('the connection was dropped');
      else exchange.end();
    }
  }

  close(): void {
    this.closed = true;
    this.reconnect();
  }

  /** The server breaks the connection. A client behind a partition hears of it when that is healed. */
  reset(): void {
    for (const connection of this.#frozen) connection.inbox.length = 0;
    this.#frozen.clear();
    for (const exchange of this.#replaceConnection()) exchange.reset();
  }

  /** The client finds the connection broken. */
  cut(): void {
    for (const exchange of this.#replaceConnection()) queueMicrotask(() => exchange.fail('the connection was lost'));
  }

  /** The client is no more. What it has sent arrives; it hears nothing. */
  crash(): void {
    this.crashed = true;
    for (const exchange of this.#replaceConnection()) exchange.abandon();
  }

  partition(): void {
    this.partitioned = true;
  }

  heal(streams: 'resume' | 'end' | 'silent'): void {
    if (!this.partitioned) return;
    this.partitioned = false;
    if (streams === 'end') for (const exchange of this.#replaceConnection()) exchange.reset();
    if (streams === 'silent') {
      this.#connection.silenced = true;
      this.#replaceConnection();
    }
    this.#release();
  }

  freeze(): void {
    this.#connection.frozen = true;
    this.#frozen.add(this.#connection);
  }

  thaw(): void {
    for (const connection of this.#frozen) {
      connection.frozen = false;
      for (const run of connection.inbox.splice(0)) queueMicrotask(run);
    }
    this.#frozen.clear();
    this.#release();
  }

  #open(kind: 'call' | 'stream', onFailed: (error: ConnectionError) => void): Exchange {
    const exchange = new Exchange(this, this.#connection, kind, onFailed);
    if (this.closed) queueMicrotask(() => exchange.fail('closed', false));
    else if (!this.crashed) this.#connection.exchanges.add(exchange);
    return exchange;
  }

  #replaceConnection(): Exchange[] {
    const exchanges = [...this.#connection.exchanges];
    this.#connection = new Connection();
    return exchanges;
  }

  #release(): void {
    const lanes = [...this.held];
    this.held.clear();
    for (const lane of lanes) queueMicrotask(() => lane.pump());
  }
}
