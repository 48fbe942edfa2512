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
  const { promise, resolve, reject } = deferred();
  // A URL has brackets around an IPv6 address, an address has none.
  const socket = createConnection({ host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port), signal });
  socket.once('connect', resolve);
  socket.once('error', reject);
  return promise.finally(() => socket.destroy());
}

function deferred(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
  let resolve = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

async function requestOnce(url: URL, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { signal, redirect: 'manual' });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`status ${response.status}`);
}

/** Why one attempt failed, in a few words. `fetch` hides the reason in the cause. */
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
