/** Ports for test servers, and proof of who listens on them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

/** Below the range from which Linux takes the ports of outgoing connections, so that a server can come back on its own. */
const LOWEST_PORT = 12_000;
const HIGHEST_PORT = 32_000;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A port on which nobody listens now. Somebody may in a moment: who takes it must cope with that. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT));
    if (await isFree(port)) return port;
  }
}

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}

const TCP_LISTEN = '0A';

/** Inodes of the sockets that listen on `port`, on any address. */
function listeningInodes(port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes: string[] = [];
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state === TCP_LISTEN && local.endsWith(suffix)) inodes.push(inode);
    }
  }
  return inodes;
}

/** Whether process `pid` listens on `port`. Elsewhere than on Linux nothing can be said, and it is believed. */
export function ownsPort(pid: number, port: number): boolean {
  if (process.platform !== 'linux') return true;
  const wanted = new Set(listeningInodes(port).map((inode) => `socket:[${inode}]`));
  if (wanted.size === 0) return false;
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return wanted.has(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  });
}

/** How many established TCP connections this machine has to `port`, each counted once (at its client's end). */
export function connectionsTo(port: number): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const ESTABLISHED = '01';
  let count = 0;
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const [, , remote = '', state] = line.trim().split(/\s+/);
      if (state === ESTABLISHED && remote.endsWith(suffix)) count += 1;
    }
  }
  return count;
}
