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

const LISTEN = '0A';
const ESTABLISHED = '01';

interface TcpSocket {
  readonly localPort: number;
  readonly remotePort: number;
  readonly state: string;
  /** As /proc/PID/fd names it. */
  readonly name: string;
}

function portOf(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(':') + 1), 16);
}

function tcpSockets(): TcpSocket[] {
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
    readFileSync(table, 'utf8').split('\n').slice(1),
  );
  return lines.filter(Boolean).map((line) => {
    const [, local = '', remote = '', state = '', , , , , , inode = ''] = line.trim().split(/\s+/);
    return { localPort: portOf(local), remotePort: portOf(remote), state, name: `socket:[${inode}]` };
  });
}

/** What the open files of a process are. */
function openFiles(pid: number | 'self'): Set<string> {
  const files = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      files.add(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // Closed since it was listed.
    }
  }
  return files;
}

/** Whether process `pid` listens on `port`. Elsewhere than on Linux nothing can be said, and it is believed. */
export function ownsPort(pid: number, port: number): boolean {
  if (process.platform !== 'linux') return true;
  const listening = tcpSockets().filter(({ localPort, state }) => localPort === port && state === LISTEN);
  if (listening.length === 0) return false;
  const files = openFiles(pid);
  return listening.some(({ name }) => files.has(name));
}

/** How many TCP connections to `port` this process holds; with `anyState` also those half made or half closed. Linux only. */
export function connectionsTo(port: number, { anyState = false } = {}): number {
  const files = openFiles('self');
  return tcpSockets().filter(
    ({ remotePort, state, name }) => remotePort === port && (anyState || state === ESTABLISHED) && files.has(name),
  ).length;
}
