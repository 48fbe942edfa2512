import type { Clock } from '../core/clock.ts';
import { ConnectionError } from '../core/errors.ts';

/** What travels: a call's or stream's message to the server, its answer, or a watch's events. */
export type MessageKind = 'request' | 'reply' | 'event';

/** How many milliseconds a message travels; 0: it arrives in a microtask. Messages of one call or stream keep their order. */
export type Delay = (kind: MessageKind, client: string) => number;

export interface Network {
  readonly clock: Clock;
  readonly delayMs: Delay;
  /** A stopped server breaks what reaches it. */
  readonly running: boolean;
}

/** What an exchange must know of the client whose it is. */
export interface Link {
  readonly name: string;
  readonly endpoint: string;
  readonly network: Network;
  readonly partitioned: boolean;
  readonly crashed: boolean;
  readonly closed: boolean;
  /** Lanes with something to deliver when the way is free again. */
  readonly held: Set<Lane>;
}

/** Messages in one direction, each delayed, delivered in order, held back while the way is blocked. */
export class Lane {
  #queue: (() => void)[] = [];
  #due = 0;
  #closed = false;

  constructor(
    private readonly link: Link,
    private readonly blocked: () => boolean,
  ) {}

  send(kind: MessageKind, deliver: () => void): void {
    if (this.#closed) return;
    this.#queue.push(deliver);
    const arrive = () => {
      this.#due++;
      this.pump();
    };
    const { network, name } = this.link;
    const delayMs = network.delayMs(kind, name);
    if (delayMs > 0) network.clock.setTimeout(arrive, delayMs);
    else queueMicrotask(arrive);
  }

  pump(): void {
    while (this.#due > 0 && !this.#closed) {
      if (this.blocked()) {
        this.link.held.add(this);
        return;
      }
      this.#due--;
      this.#queue.shift()?.();
    }
  }

  /** What is on its way is lost. */
  close(): void {
    this.#closed = true;
    this.#queue = [];
    this.link.held.delete(this);
  }
}

/** One call or stream on a connection. */
export class Exchange {
  readonly #up: Lane;
  #down: Lane;
  #serverOpen = true;
  #clientOpen = true;
  /** Called when the server has nothing more to do with it. */
  onDetached: () => void = () => undefined;

  constructor(
    private readonly link: Link,
    private readonly connection: Connection,
    readonly kind: 'call' | 'stream',
    private readonly onFailed: (error: ConnectionError) => void,
  ) {
    const cutOff = () => link.partitioned || connection.silenced;
    this.#up = new Lane(link, cutOff);
    this.#down = new Lane(link, () => cutOff() || connection.frozen);
  }

  /** Whether the server still serves it. */
  get attached(): boolean {
    return this.#serverOpen;
  }

  /** To the server. A frozen server does the work when it thaws, whatever has become of the client. */
  request(work: () => void): void {
    if (!this.#clientOpen || this.link.crashed || this.link.closed) return;
    const run = () => {
      if (!this.link.network.running) this.reset();
      else work();
    };
    this.#up.send('request', () => {
      if (this.connection.frozen) this.connection.inbox.push(run);
      else run();
    });
  }

  /** To the client. */
  reply(kind: MessageKind, deliver: () => void): void {
    if (!this.#serverOpen) return;
    this.#down.send(kind, () => {
      if (this.#clientOpen) deliver();
    });
  }

  /** The server breaks it, and the client hears of that as soon as the way is free. What is on its way is lost. */
  reset(): void {
    this.#detach();
    this.#up.close();
    this.#down.close();
    this.#down = new Lane(this.link, () => this.link.partitioned || this.connection.silenced);
    this.#down.send('reply', () => this.fail('the connection was lost'));
  }

  /** The client takes it for broken. */
  fail(reason: string): void {
    if (!this.#clientOpen) return;
    this.end();
    this.onFailed(new ConnectionError(`${this.link.endpoint}: ${reason}`));
  }

  /** The client is done with it. What it has sent arrives, unless it is held back by a partition. */
  end(): void {
    this.#clientOpen = false;
    this.#down.close();
    if (this.link.partitioned) this.#up.close();
    this.#detach();
  }

  /** The client is gone: it neither ends nor fails, it hears no more. */
  abandon(): void {
    this.#clientOpen = false;
    this.#down.close();
    this.#detach();
  }

  #detach(): void {
    this.connection.exchanges.delete(this);
    if (!this.#serverOpen) return;
    this.#serverOpen = false;
    this.onDetached();
  }
}

/** What the exchanges of one connection share. */
export class Connection {
  readonly exchanges = new Set<Exchange>();
  /** The server at the other end stands still: it takes messages and does nothing, until it thaws. */
  frozen = false;
  readonly inbox: (() => void)[] = [];
  /** Nothing comes or goes any more, and nobody is told. */
  silenced = false;
}
