import { ConnectionError } from '../core/errors.ts';
import { Connection, Exchange, type Lane, type Link, type Network } from './exchange.ts';

/** A client's way to the server, and what can be wrong with it. */
export class Transport implements Link {
  partitioned = false;
  crashed = false;
  closed = false;
  /** So many writes to come are lost on their way to the server. */
  lostRequests = 0;
  /** So many writes to come are done, and their answers lost. */
  lostReplies = 0;
  readonly held = new Set<Lane>();
  #connection = new Connection();
  /** A client uses no connection that it has not proven, nor one that broke since: only `connect` makes another. */
  #proven = false;
  /** The connection broke while the client could not hear of it. */
  #brokeUnheard = false;
  readonly #frozen = new Set<Connection>();

  constructor(
    readonly name: string,
    readonly network: Network,
  ) {}

  get endpoint(): string {
    return `memory://${this.name}`;
  }

  /** Takes a new connection and proves it by a call. Calls on the one before fail, its streams end without a word. */
  async connect<T>(timeoutMs: number, probe: () => T): Promise<T> {
    this.#drop();
    if (this.closed) throw this.#unusable();
    const connection = this.#connection;
    const answer = await this.#call(timeoutMs, false, probe);
    if (this.#connection === connection) this.#proven = true;
    return answer;
  }

  /** A stream; `onFailed` hears its end unless the client ends it itself. */
  openStream(onFailed: (error: ConnectionError) => void): Exchange {
    const exchange = this.#open('stream', onFailed);
    if (!this.#proven && !this.crashed) queueMicrotask(() => exchange.fail(this.#trouble));
    return exchange;
  }

  /** A call that `work` answers, on the server. */
  async call<T>(timeoutMs: number, writes: boolean, work: () => T): Promise<T> {
    if (!this.#proven && !this.crashed) throw this.#unusable();
    return this.#call(timeoutMs, writes, work);
  }

  close(): void {
    this.closed = true;
    this.#drop();
  }

  /** The server breaks the connection. A client behind a partition hears of it when that is healed. */
  reset(): void {
    for (const connection of this.#frozen) connection.inbox.length = 0;
    this.#frozen.clear();
    for (const exchange of this.#replaceConnection()) exchange.reset();
    if (this.partitioned) this.#brokeUnheard = true;
    else this.#proven = false;
  }

  /** The client finds the connection broken. */
  cut(): void {
    this.#proven = false;
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
    if (streams === 'end') this.reset();
    if (streams === 'silent') this.#connection.silenced = true;
    if (this.#brokeUnheard) this.#proven = false;
    this.#brokeUnheard = false;
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

  #call<T>(timeoutMs: number, writes: boolean, work: () => T): Promise<T> {
    if (this.crashed) return new Promise(() => undefined);
    return new Promise((resolve, reject) => {
      const exchange = this.#open('call', (error) => {
        timer.clear();
        reject(error);
      });
      const timer = this.network.clock.setTimeout(() => exchange.fail(`no answer within ${timeoutMs} ms`), timeoutMs);
      exchange.request(() => {
        if (writes && this.lostRequests > 0) {
          this.lostRequests--;
          return exchange.reset();
        }
        const settle = this.#outcome(work, resolve, reject);
        if (writes && this.lostReplies > 0) {
          this.lostReplies--;
          return exchange.reset();
        }
        exchange.reply('reply', () => {
          timer.clear();
          exchange.end();
          settle();
        });
      });
    });
  }

  get #trouble(): string {
    return this.closed ? 'closed' : 'not connected';
  }

  #unusable(): ConnectionError {
    return new ConnectionError(`${this.endpoint}: ${this.closed ? 'closed' : 'not connected'}`, {
      retryable: !this.closed,
    });
  }

  #outcome<T>(work: () => T, resolve: (result: T) => void, reject: (error: unknown) => void): () => void {
    try {
      const result = work();
      return () => resolve(result);
    } catch (error) {
      return () => reject(error);
    }
  }

  #drop(): void {
    this.#proven = false;
    this.#brokeUnheard = false;
    for (const exchange of this.#replaceConnection()) {
      if (exchange.kind === 'call') exchange.fail('the connection was dropped');
      else exchange.end();
    }
  }

  #open(kind: 'call' | 'stream', onFailed: (error: ConnectionError) => void): Exchange {
    const exchange = new Exchange(this, this.#connection, kind, onFailed);
    if (!this.crashed && !this.closed) this.#connection.exchanges.add(exchange);
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
