import { createInterface } from 'node:readline';
import { EtcdEphemeral } from '../../src/index.ts';
import type { ClientOrders } from './client-process.ts';

const { options, keys = {}, watch = [] } = JSON.parse(process.argv[2] ?? '') as ClientOrders;
const client = await EtcdEphemeral.connect(options);
for (const path of watch) {
  client
    .list(path, { watch: true, missing: 'wait' })
    .subscribe(({ children, status }) => console.log(`list ${path} ${status} ${children.join(' ')}`));
}
for (const [path, value] of Object.entries(keys)) {
  const registration = await client.addKey(path, value);
  registration.state$.subscribe((state) => console.log(`state ${path} ${state}`));
}
const TrueDate = Date;

function setWallClock(offsetMs: number): void {
  globalThis.Date = class extends TrueDate {
    constructor(...given: []) {
      if (given.length > 0) super(...given);
      else super(TrueDate.now() + offsetMs);
    }

    static override now(): number {
      return TrueDate.now() + offsetMs;
    }
  } as DateConstructor;
}

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
  console.log('unblocked');
}

createInterface(process.stdin).on('line', (line) => {
  const [order, ms] = line.split(' ');
  if (order === 'clock') setWallClock(Number(ms));
  else block(Number(ms));
});
process.on('SIGTERM', () => {
  // Nothing of a closed client keeps its process.
  void client.close().then(() => process.stdin.destroy());
});
// Whoever hears this may send a signal at once.
console.log('ready');
