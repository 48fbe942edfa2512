/**
 * An app that follows a live list, here the one that examples/http-service.ts registers on.
 *
 *   ETCD_ENDPOINTS=http://127.0.0.1:2379 node --import tsx examples/subscriber.ts
 */
import { changes, EtcdEphemeral } from 'etcd-ephemeral';

const { ETCD_ENDPOINTS = 'http://127.0.0.1:2379' } = process.env;

const etcd = await EtcdEphemeral.connect({ hosts: ETCD_ENDPOINTS.split(',') });

// `values` for the addresses; `missing: 'wait'` because we may be here before the first service is.
const services = etcd.list('/services/api', { watch: true, values: true, missing: 'wait' });

// Each listing is the whole list, so that there is nothing to keep in step; changes() adds what is new since the one before.
const subscription = services.pipe(changes()).subscribe({
  next: ({ added, removed, changed, listing }) => {
    // Stale: etcd cannot be asked now. The list is the last one known, and worth more than none.
    const addresses = [...listing.entries].map(([name, { value }]) => `${name}=${value}`);
    console.log(`${listing.status} [${addresses.join(' ')}] came [${added}] went [${removed}] changed [${changed}]`);
  },
  error: (error) => {
    // Only what does not pass by itself ends a live list, such as a lack of permission.
    console.error(error);
    process.exitCode = 1;
  },
});

process.once('SIGTERM', async () => {
  subscription.unsubscribe();
  await etcd.close();
});
