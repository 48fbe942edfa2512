/**
 * The few calls to etcd that the library does not offer, by way of etcd's HTTP API: what a program that watches and registers never
 * needs to do, delete a whole prefix.
 */

const TIMEOUT_MS = 5_000;

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** The first text behind all that begin with `prefix`, which ends in an ASCII character other than the last. */
function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

async function call(endpoint: string, path: string, body: object): Promise<Record<string, unknown>> {
  let response: Response;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(`${endpoint}${path}`, { method: 'POST', body: JSON.stringify(body), signal });
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : message;
    throw new Error(
      `no etcd answers at ${endpoint} (${reason}): check ETCD_ENDPOINTS, or unset it for an etcd of the demo’s own`,
    );
  }
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  throw new Error(
    `${endpoint} refuses ${path} (HTTP ${response.status}: ${text.trim().slice(0, 200)}): the demo needs an etcd with its HTTP API, ` +
      'and without users; unset ETCD_ENDPOINTS for an etcd of the demo’s own',
  );
}

/** Such as `3.5.16`. */
export async function etcdVersion(endpoint: string): Promise<string> {
  const { version } = await call(endpoint, '/v3/maintenance/status', {});
  return String(version);
}

/** Resolves to how many keys there were. */
export async function deletePrefix(endpoint: string, prefix: string): Promise<number> {
  const range = { key: base64(prefix), range_end: base64(endOf(prefix)) };
  const { deleted = 0 } = await call(endpoint, '/v3/kv/deleterange', range);
  return Number(deleted);
}
