import { get } from 'node:http';
import { EtcdEphemeral, type ListingWithValues } from '../index.ts';
import { aborted, type Parent } from './parent.ts';
import { DIRECTORY, type GatewayReport, type GatewayTask, TTL } from './tasks.ts';

/** 40 requests a second: enough to meet a dead service within a moment. */
const REQUEST_PERIOD_MS = 25;
const REQUEST_TIMEOUT_MS = 1_000;

/** Resolves to whether the service called `name` answered. Each request has a connection of its own, so that none is spared. */
function request(address: string, name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const sent = get(address, { agent: false, signal }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('error', () => resolve(false));
      response.on('end', () => resolve(response.statusCode === 200 && body === name));
    });
    sent.on('error', () => resolve(false));
  });
}

interface Counts {
  sent: number;
  served: number;
  failed: number;
}

/** Knows no address. Sends requests to those on the live list, one after the other, and counts how they fare. */
export async function gateway({ store }: GatewayTask, parent: Parent<GatewayReport>): Promise<void> {
  const client = await EtcdEphemeral.connect({
    hosts: [...store.endpoints],
    namespace: store.namespace,
    ttl: TTL,
    // Anyone who watches may become master; here it stays among the services, where the screen shows who it is.
    candidate: false,
  });
  let listing: ListingWithValues | undefined;
  const traffic: Record<string, Counts> = {};
  const listed = () => [...(listing?.entries ?? [])].map(([name, { value }]) => ({ name, address: value }));

  client.list(DIRECTORY, { watch: true, values: true, missing: 'wait' }).subscribe({
    next: (next) => {
      const isFirst = listing === undefined;
      listing = next;
      if (isFirst) parent.ready(() => ({ status: listing?.status ?? 'stale', listed: listed(), traffic }));
      else parent.report();
    },
    error: (error) => parent.fail(error),
  });

  let turn = 0;
  const timer = setInterval(async () => {
    const targets = listed();
    const target = targets[turn++ % targets.length];
    if (!target) return;
    traffic[target.name] ??= { sent: 0, served: 0, failed: 0 };
    const counts = traffic[target.name] as Counts;
    counts.sent += 1;
    const isServed = await request(target.address, target.name);
    counts[isServed ? 'served' : 'failed'] += 1;
  }, REQUEST_PERIOD_MS);

  await aborted(parent.stopped);
  clearInterval(timer);
  await client.close();
}
