import { get as getPlain } from 'node:http';
import { get as getByTls } from 'node:https';
import { createConnection } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { messageOf } from '../core/log.ts';

/** Soon enough that nobody waits for it, rare enough that a starting service does not feel it. */
const POLL_MS = 100;
/** A service that takes longer to answer is not ready. */
const ATTEMPT_MS = 2_000;

export function parseReadyUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  const isTcp = url?.protocol === 'tcp:' && url.hostname !== '' && url.port !== '';
  if (url === undefined || !(isHttp || isTcp)) {
    throw new InvalidArgumentError('It is tcp://host:port, or an http:// or https:// URL.');
  }
  return url;
}

function connectOnce(url: URL, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    // A URL has brackets around an IPv6 address, an address has none.
    const socket = createConnection({ host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port), signal });
    socket.on('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}

/** Not with fetch, which refuses a number of ports that a service may well have. */
function requestOnce(url: URL, signal: AbortSignal): Promise<void> {
  const get = url.protocol === 'https:' ? getByTls : getPlain;
  return new Promise((resolve, reject) => {
    const request = get(url, { signal, agent: false }, ({ statusCode = 0 }) => {
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(new Error(`status ${statusCode}`));
      request.destroy();
    });
    request.on('error', reject);
  });
}

/** Why one attempt failed, in a few words. An abort hides the reason in its cause. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && error.cause !== undefined) return reasonOf(error.cause);
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${ATTEMPT_MS / 1_000} s`;
  return messageOf(error);
}

/**
 * Resolves when the service answers: a TCP connection is accepted, or HTTP says 2xx. Tries until then, or until `signal` is aborted.
 * `onWaiting` hears why it is not ready, once for each new reason.
 */
export async function untilReady(url: URL, signal: AbortSignal, onWaiting: (reason: string) => void): Promise<void> {
  const attempt = url.protocol === 'tcp:' ? connectOnce : requestOnce;
  let told: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await attempt(url, AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]));
    } catch (error) {
      signal.throwIfAborted();
      const reason = reasonOf(error);
      if (reason !== told) onWaiting(reason);
      told = reason;
    }
    await delay(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
