import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdEphemeral } from '../index.ts';
import { Counters } from './counters.ts';
import { aborted, type Parent } from './parent.ts';
import { DIRECTORY, type ServiceReport, type ServiceTask, TTL } from './tasks.ts';

/** From the end of the registration until the server closes: requests that are under way, and lists that hear of it a moment later. */
const DRAIN_MS = 400;

/**
 * A service as one would write it: an HTTP server that registers its address once it listens. Like many a service, it also wants to
 * know its peers; so it watches the list, and with that stands in line to become the mirror's master.
 */
export async function service(task: ServiceTask, parent: Parent<ServiceReport>): Promise<void> {
  const { store, name, heartbeat } = task;
  const server = createServer((_, response) => response.end(name));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const stats = new Counters();
  const client = await EtcdEphemeral.connect({
    hosts: [...store.endpoints],
    namespace: store.namespace,
    ttl: TTL,
    stats,
  });
  const registration = await client.addKey(`${DIRECTORY}/${name}`, address, { heartbeat });
  // With values, as the gateway needs them: lists of names have a mirror of their own.
  const peers = client.list(DIRECTORY, { watch: true, values: true, missing: 'wait' });
  peers.subscribe({ error: (error) => parent.fail(error) });
  parent.ready(() => ({
    address,
    heard: stats.sum('list.messages'),
    refreshes: stats.sum('mirror.refreshesCollapsed'),
    masterships: stats.sum('mirror.masterships'),
  }));

  await aborted(parent.stopped);
  await registration.remove();
  await sleep(DRAIN_MS);
  server.close();
  await client.close();
}
