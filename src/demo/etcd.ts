/** An etcd of the demo's own: one member, in a temporary folder, on free ports of the loopback address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
/** Another process may take a port between its choice and its use. */
const START_ATTEMPTS = 5;
const LOG_TAIL_CHARS = 1_500;

const HOW_TO_INSTALL =
  'install etcd 3.4 or newer (Debian, Ubuntu: apt-get install etcd-server; macOS: brew install etcd; any other: unpack a release of ' +
  'https://github.com/etcd-io/etcd/releases and set ETCD_BIN_DIR to its folder), or set ETCD_ENDPOINTS to one that runs';

export interface OwnEtcd {
  readonly endpoint: string;
  readonly pid: number;
  /** Rejects when it ends before it is told to. */
  readonly died: Promise<never>;
  /** Kills it and removes its folder. */
  destroy(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address !== null && typeof address === 'object' ? address.port : freePort();
}

/** etcd refuses to start where a variable of its own and a flag say different things. */
function environment(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('ETCD_'));
  // 3.4 wants this said on arm64.
  return { ...Object.fromEntries(others), ETCD_UNSUPPORTED_ARCH: process.arch };
}

/** Whether the member called `name` answers there, and not somebody else's etcd that got the port first. */
async function answers(endpoint: string, name: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(1_000);
    const health = await fetch(`${endpoint}/health`, { signal });
    const members = await fetch(`${endpoint}/v3/cluster/member/list`, { method: 'POST', body: '{}', signal });
    return health.ok && (await members.text()).includes(`"${name}"`);
  } catch {
    return false;
  }
}

class EtcdEndedError extends Error {}

async function spawnEtcd(
  args: readonly string[],
): Promise<{ child: ChildProcess; pid: number; ended: Promise<never> }> {
  const { ETCD_BIN_DIR } = process.env;
  const command = ETCD_BIN_DIR ? join(ETCD_BIN_DIR, 'etcd') : 'etcd';
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: environment() });
  let log = '';
  child.stderr.on('data', (chunk) => {
    log = (log + chunk).slice(-LOG_TAIL_CHARS);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once('close', () =>
      reject(new EtcdEndedError(`etcd ended unexpectedly: ${log.trim() || 'it said nothing'}`)),
    );
  });
  ended.catch(() => {});
  try {
    await once(child, 'spawn');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const where = ETCD_BIN_DIR ? `in ETCD_BIN_DIR (${ETCD_BIN_DIR})` : 'on the PATH';
    const problem = code === 'ENOENT' ? `there is no etcd ${where}` : `etcd ${where} cannot be run (${message})`;
    throw new Error(`${problem}: ${HOW_TO_INSTALL}`);
  }
  return { child, pid: child.pid as number, ended };
}

async function tryToStart(folder: string, signal: AbortSignal): Promise<OwnEtcd> {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  const name = `demo-${endpoint.slice('http://'.length)}-${process.pid}`;
  const { child, pid, ended } = await spawnEtcd(
    [
      ['--name', name, '--data-dir', join(folder, 'data')],
      ['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
      ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `${name}=${peer}`],
      ['--logger', 'zap', '--log-outputs', 'stderr', '--log-level', 'warn'],
    ].flat(),
  );
  const stop = async () => {
    child.kill('SIGKILL');
    await ended.catch(() => {});
  };
  try {
    const endMs = performance.now() + START_TIMEOUT_MS;
    while (!(await Promise.race([answers(endpoint, name), ended]))) {
      signal.throwIfAborted();
      if (performance.now() > endMs) throw new Error(`etcd gave no answer within ${START_TIMEOUT_MS / 1_000} s`);
      await Promise.race([sleep(POLL_MS), ended]);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const destroy = async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { endpoint, pid, died: ended, destroy };
}

/** `signal` ends the attempt; nothing is left of it then. */
export async function startEtcd(signal: AbortSignal): Promise<OwnEtcd> {
  const folder = mkdtempSync(join(tmpdir(), 'ephemeral-demo-'));
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await tryToStart(folder, signal);
    } catch (error) {
      rmSync(join(folder, 'data'), { recursive: true, force: true });
      const isPortTaken = error instanceof EtcdEndedError && error.message.includes('address already in use');
      if (isPortTaken && attempt < START_ATTEMPTS) continue;
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }
}
