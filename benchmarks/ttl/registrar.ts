/** A process that registers `count` keys, each through a client and lease of its own, says so, and lives until it is killed. */
import { EtcdEphemeral } from '../../src/index.ts';

const [endpoints = '', ttl = '10', prefix = '/', count = '1'] = process.argv.slice(2);

await Promise.all(
  Array.from({ length: Number(count) }, async (_, n) => {
    const client = await EtcdEphemeral.connect({ hosts: endpoints.split(','), ttl: Number(ttl) });
    const registration = await client.addKey(`${prefix}/${n}`, String(process.pid));
    registration.state$.subscribe((state) => process.send?.({ state, reason: registration.error?.message }));
  }),
);
process.send?.({ ready: true });
process.on('disconnect', () => process.exit());
