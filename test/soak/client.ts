/** One process of the soak: several clients, each with a connection of its own, that register and watch as real ones do. */
import { setMaxListeners } from 'node:events';
import { readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdEphemeral, type Listing, type ListingWithValues, type Registration } from '../../src/index.ts';
import { Chance } from '../simulation/chance.ts';
import type { ClientOrders, Order, Report } from './messages.ts';
import type { ClientPlan, ServicePlan, WatcherPlan } from './plan.ts';

const orders = JSON.parse(process.argv[2] ?? '') as ClientOrders;
let isBusy = false;
const closing = new AbortController();
setMaxListeners(0, closing.signal);

const tell = (report: Report) => process.stdout.write(`${JSON.stringify(report)}\n`);
const broken = (what: string, error: unknown) =>
  tell({ is: 'broken', what: `${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` });

process.on('unhandledRejection', (error) => broken('unhandled rejection', error));
process.on('uncaughtException', (error) => broken('uncaught exception', error));
process.on('warning', (warning) => broken('warning', warning));
// Ctrl-C goes to the whole group; the soak itself says when to end.
process.on('SIGINT', () => {});

/** One client: whatever it does, it does for as long as the process lives. */
class Participant {
  readonly #index: number;
  readonly #plan: ClientPlan;
  readonly #chance: Chance;
  #client: EtcdEphemeral | undefined;
  #registration: Registration | undefined;
  #leave: () => void = () => {};
  #subscriptions = 0;
  #values = 0;
  /** What became of it of late. */
  readonly #said: string[] = [];
  isAllThere = false;

  constructor(index: number, plan: ClientPlan) {
    this.#index = index;
    this.#plan = plan;
    this.#chance = new Chance(orders.seed + orders.incarnation * 1_000 + index);
  }

  async start(): Promise<void> {
    this.#client = await EtcdEphemeral.connect({
      hosts: orders.hosts,
      ttl: orders.ttl,
      candidate: this.#plan.candidate,
      connectTimeout: Number.POSITIVE_INFINITY,
    });
    this.#client.state$.subscribe((state) => this.#note(state));
    tell({ is: 'connected', client: this.#index, atMs: Date.now() });
    const { service, watcher } = this.#plan;
    if (service) await this.#register(service);
    if (watcher) await this.#watch(watcher);
    this.isAllThere = true;
  }

  async live(): Promise<void> {
    while (!closing.signal.aborted) {
      await sleep(this.#chance.int(500, 8_000), undefined, { signal: closing.signal }).catch(() => {});
      if (!isBusy || closing.signal.aborted) continue;
      this.isAllThere = false;
      try {
        const { service, watcher } = this.#plan;
        if (this.#chance.is(0.1)) await this.#reconnect();
        else if (service) await this.#change(service);
        else if (watcher) {
          this.#unsubscribe();
          await this.#watch(watcher);
        }
      } catch (error) {
        broken(`client ${this.#index} of ${orders.name}`, error);
      }
      this.isAllThere = true;
    }
  }

  explain(): string {
    const { state, error, value } = this.#registration ?? {};
    const told = this.#registration ? `${value} ${state} ${error?.message ?? ''}` : 'no registration';
    return `${this.#client?.state}, ${told}; ${this.#said.slice(-12).join(', ')}`;
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    this.#asked(undefined);
    await this.#client?.close();
  }

  async #reconnect(): Promise<void> {
    await this.close();
    this.#registration = undefined;
    await this.start();
  }

  async #change(service: ServicePlan): Promise<void> {
    if (this.#chance.is(0.6)) {
      await this.#registration?.update(this.#nextValue());
      return;
    }
    this.#asked(undefined);
    await this.#registration?.remove();
    for (const endMs = Date.now() + this.#chance.int(0, 1_500); isBusy && Date.now() < endMs; ) await sleep(50);
    await this.#register(service);
  }

  async #register({ key, heartbeat }: ServicePlan): Promise<void> {
    // Not waited for: a predecessor that was killed may hold the key for as long as an outage of the store lasts.
    const registration = await this.#client?.addKey(key, this.#nextValue(), { heartbeat, wait: false });
    registration?.state$.subscribe((state) => this.#note(`${state} ${registration.error?.message ?? ''}`));
    this.#registration = registration;
  }

  #note(what: string): void {
    this.#said.push(`${new Date().toISOString().slice(17, 23)} ${what}`);
    if (this.#said.length > 20) this.#said.shift();
  }

  #nextValue(): string {
    this.#values += 1;
    const value = `${orders.name}#${orders.incarnation}-${this.#values}`;
    this.#asked(value);
    return value;
  }

  #asked(value: string | undefined): void {
    if (this.#plan.service) tell({ is: 'asked', client: this.#index, value, atMs: Date.now() });
  }

  /** Resolves with the first listing. */
  async #watch({ path, via, values }: WatcherPlan): Promise<void> {
    const client = this.#client as EtcdEphemeral;
    const options = { watch: true, missing: 'wait', via } as const;
    this.#subscriptions += 1;
    const subscription = this.#subscriptions;
    await new Promise<void>((resolve) => {
      const next = (listing: Listing | ListingWithValues) => {
        const { revision, epoch, status } = listing;
        tell({
          is: 'listing',
          client: this.#index,
          subscription,
          revision,
          epoch,
          status,
          told: toldOf(listing),
          atMs: Date.now(),
        });
        resolve();
      };
      const error = (failure: unknown) => {
        broken(`the list of ${path}`, failure);
        resolve();
      };
      const list = values ? client.list(path, { ...options, values }) : client.list(path, options);
      const subscribed = list.subscribe({ next, error, complete: resolve });
      this.#leave = () => {
        subscribed.unsubscribe();
        tell({ is: 'unsubscribed', client: this.#index, subscription, atMs: Date.now() });
      };
    });
  }

  #unsubscribe(): void {
    this.#leave();
    this.#leave = () => {};
  }
}

/** Checked against the store's history: names, and of lists with values also what and since when. */
function toldOf({ children, entries }: Listing): string {
  if (!entries) return children.join(' ');
  return [...entries].map(([name, { value, created }]) => `${name}=${value}@${created}`).join(' ');
}

const participants = orders.clients.map((plan, index) => new Participant(index, plan));

function block(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs; );
}

function sample(): void {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo();
  tell({
    is: 'sample',
    rssMb: rss / 2 ** 20,
    heapMb: heapUsed / 2 ** 20,
    files: readdirSync('/proc/self/fd').length,
    sockets: handles.filter((kind) => kind === 'TCPSocketWrap').length,
    handles: handles.filter((kind) => kind !== 'Timeout').length,
  });
}

async function beQuiet(): Promise<void> {
  while (!isBusy && !closing.signal.aborted) {
    if (participants.every(({ isAllThere }) => isAllThere)) {
      tell({ is: 'quiet' });
      return;
    }
    await sleep(20);
  }
}

async function close(): Promise<void> {
  closing.abort();
  await Promise.all(participants.map((it) => it.close()));
  // Nothing of the clients keeps the process alive; what is left is ours.
  input.close();
  process.stdin.destroy();
}

const input = createInterface(process.stdin).on('line', (line) => {
  const order = JSON.parse(line) as Order;
  if (order.do === 'block') block(order.ms);
  else if (order.do === 'sample') sample();
  else if (order.do === 'explain') tell({ is: 'explained', what: participants[order.client]?.explain() ?? '' });
  else if (order.do === 'close') void close();
  else {
    isBusy = order.do === 'busy';
    if (!isBusy) void beQuiet();
  }
});

await Promise.all(participants.map((it) => it.start()));
tell({ is: 'ready' });
await Promise.all(participants.map((it) => it.live()));
