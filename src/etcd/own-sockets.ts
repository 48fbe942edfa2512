/**
 * The sockets that grpc-js opens for one connection. It does not give them up by itself while a peer keeps silent: closing a
 * channel waits for the other side, without bound, and a connect under way keeps the process alive for minutes. So they are noted
 * when they are made, and destroyed with the connection.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const SOCKET_MADE = 'net.client.socket';

/** Whose sockets those are that are made in this asynchronous context. */
const owner = new AsyncLocalStorage<OwnSockets>();
let watching = 0;

function onSocketMade(message: unknown): void {
  owner.getStore()?.add((message as { readonly socket: Socket }).socket);
}

export class OwnSockets {
  readonly #sockets = new Set<Socket>();
  #made = 0;
  #destroyed = false;

  /** Runs `connect` and claims the sockets made for it. The context costs on every promise, so it is on for that long only. */
  async claim<T>(connect: () => Promise<T>): Promise<T> {
    if (watching === 0) subscribe(SOCKET_MADE, onSocketMade);
    watching += 1;
    try {
      return await owner.run(this, connect);
    } finally {
      watching -= 1;
      if (watching === 0) {
        unsubscribe(SOCKET_MADE, onSocketMade);
        owner.disable();
      }
    }
  }

  /** Whether there was one and is none any more. */
  get lost(): boolean {
    return this.#made > 0 && this.#sockets.size === 0;
  }

  add(socket: Socket): void {
    // grpc-js listens neither between the connect and the session nor after it is done: a reset then would end the process.
    socket.on('error', () => {});
    if (this.#destroyed) {
      // It is told of just before it connects, and a socket that is destroyed before that connects all the same.
      queueMicrotask(() => socket.destroy());
      return;
    }
    this.#made += 1;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  destroy(): void {
    this.#destroyed = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}
