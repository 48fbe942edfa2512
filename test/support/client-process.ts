/** A client in a process of its own, to be frozen or killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { ConnectOptions } from '../../src/index.ts';
import { until } from './wait.ts';

export interface ClientOrders {
  readonly options: Pick<ConnectOptions, 'ttl' | 'namespace' | 'heartbeat' | 'stallLimit'> & { readonly hosts: string };
  readonly keys?: Readonly<Record<string, string>>;
  /** Directories to watch, through the mirror. */
  readonly watch?: readonly string[];
}

export interface ClientProcess {
  readonly child: ChildProcess;
  /** What it said, oldest first: `ready`, `state PATH STATE`, `list PATH NAMES`. */
  readonly lines: readonly string[];
  said(line: string): Promise<unknown>;
  kill(signal: NodeJS.Signals): void;
  /** Busies its event loop. */
  block(ms: number): void;
  /** Sets its wall clock, by so much from the true time. */
  setWallClock(offsetMs: number): void;
  readonly exited: Promise<unknown>;
}

const PROGRAM = fileURLToPath(new URL('./client-program.ts', import.meta.url));
/** Sources run in worker threads, too. */
const WORKERS = new URL('./tsx-in-workers.mjs', import.meta.url).href;

export function startClient(t: ExecutionContext, orders: ClientOrders): ClientProcess {
  const child = spawn(process.execPath, ['--import=tsx', `--import=${WORKERS}`, PROGRAM, JSON.stringify(orders)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const exited = new Promise((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return {
    child,
    lines,
    exited,
    said: (line) => until(() => lines.includes(line), `the client to say "${line}"; it said ${JSON.stringify(lines)}`),
    kill: (signal) => void child.kill(signal),
    block: (ms) => void child.stdin.write(`block ${ms}\n`),
    setWallClock: (offsetMs) => void child.stdin.write(`clock ${offsetMs}\n`),
  };
}
