/**
 * A service that is listed exactly as long as it serves.
 *
 *   ETCD_ENDPOINTS=http://127.0.0.1:2379 PORT=8080 NAME=node-1 node --import tsx examples/http-service.ts
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdEphemeral } from 'etcd-ephemeral';

const {
  ETCD_ENDPOINTS = 'http://127.0.0.1:2379',
  PORT = '0',
  NAME = `node-${process.pid}`,
  DRAIN_S = '1',
} = process.env;

// Listen first: whoever finds us on the list may send a request in the next millisecond.
const server = createServer((_request, response) => response.end(`hello from ${NAME}\n`));
server.listen(Number(PORT), '127.0.0.1');
await once(server, 'listening');
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// Resolves once etcd has the key. From here on the library keeps it there: through restarts of etcd, outages and stalls.
const etcd = await EtcdEphemeral.connect({ hosts: ETCD_ENDPOINTS.split(',') });
const registration = await etcd.addKey(`/services/api/${NAME}`, address);
console.log(`${NAME} serves at ${address} and is registered`);

// No reason to stop serving, but one to tell: for a while others may not find us.
registration.state$.subscribe((state) => {
  if (state === 'lost') console.warn(`not listed at present: ${registration.error?.message}`);
});

// In this order no request fails: off the list, time for the others to hear of it, the requests under way, the end.
process.once('SIGTERM', async () => {
  await registration.remove();
  console.log(`${NAME} is deregistered and drains`);
  await sleep(Number(DRAIN_S) * 1_000);
  server.close();
  await etcd.close();
});
