/** The connections of this process, each with whose it is. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const owner = new AsyncLocalStorage<number>();
const sockets = new Map<Socket, number | undefined>();

subscribe('net.client.socket', (message) => {
  const { socket } = message as { readonly socket: Socket };
  sockets.set(socket, owner.getStore());
  socket.once('close', () => sockets.delete(socket));
});

/** Sockets made by `open` are this member's. */
export function owned<T>(index: number, open: () => Promise<T>): Promise<T> {
  return owner.run(index, open);
}

/** The context costs on every promise: no longer than needed. */
export function stopOwning(): void {
  owner.disable();
}

export function connected(): number {
  return [...sockets.keys()].filter((socket) => !socket.destroyed && !socket.connecting).length;
}

/** By all sockets, or by those of one member. */
export function bytesRead(index?: number): number {
  let sum = 0;
  for (const [socket, of] of sockets) if (index === undefined || of === index) sum += socket.bytesRead;
  return sum;
}

export function bytesWritten(): number {
  let sum = 0;
  for (const socket of sockets.keys()) sum += socket.bytesWritten;
  return sum;
}
