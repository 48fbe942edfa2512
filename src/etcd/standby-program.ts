/** What the thread runs that stands by for the main one. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { systemClockFrom } from '../core/clock.ts';
import { Connection } from '../core/connection.ts';
import { renewOnce } from '../core/keep-alive.ts';
import { debugLog, messageOf } from '../core/log.ts';
import { standbyDuty } from '../core/standby.ts';
import type { Lease } from '../core/store.ts';
import { EtcdStore } from './etcd-store.ts';
import type { Credentials } from './options.ts';
import { CELL, type DialOrder, type StandbyOrder, type StandbyReport, type StandbySetup } from './standby-messages.ts';

const log = debugLog('standby');

/** How often it looks whether anything is to be done: a fraction of the tenth of a ttl that a keepalive may be late. */
const LOOK_FRACTION = 0.04;

const { setup, port } = workerData as { readonly setup: StandbySetup; readonly port: MessagePort };
const { ttlMs, stallLimitMs, grpcOptions, probeKey, origin, shared } = setup;
const cells = new BigInt64Array(shared);
const clock = systemClockFrom(origin);

/** The bytes of a certificate come over as plain ones. */
function toCredentials(given: DialOrder['credentials']): Credentials | undefined {
  if (!given) return undefined;
  const entries = Object.entries(given).flatMap(([name, bytes]) => (bytes ? [[name, Buffer.from(bytes)]] : []));
  return Object.fromEntries(entries) as Credentials;
}

class StandbyThread {
  readonly #connection: Connection;
  #dial: DialOrder = { do: 'dial', hosts: [], credentials: undefined, auth: undefined };
  #lease: Lease | undefined;
  #isOpening = false;
  #isRenewing = false;
  #moves = 0n;
  #movedMs = clock.now();
  /** By this thread. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #triedMs = Number.NEGATIVE_INFINITY;

  constructor() {
    const store = new EtcdStore({
      hosts: () => this.#dial.hosts,
      credentials: () => toCredentials(this.#dial.credentials),
      auth: () => this.#dial.auth,
      grpcOptions,
      probeKey,
      clock,
    });
    this.#connection = new Connection(store, { clock, ttlMs, staleAfterMs: Number.POSITIVE_INFINITY });
    port.on('message', (order: StandbyOrder) => this.#take(order));
    setInterval(() => this.#look(), ttlMs * LOOK_FRACTION);
  }

  #take(order: StandbyOrder): void {
    if (order.do === 'dial') this.#dial = order;
    else if (order.do === 'release') this.#lease = undefined;
    else {
      this.#lease = order.lease;
      this.#renewedAtMs = order.renewedAtMs;
      this.#triedMs = Number.NEGATIVE_INFINITY;
      if (!this.#isOpening) void this.#open();
    }
  }

  /** Once: from there on the connection looks after itself. */
  async #open(): Promise<void> {
    this.#isOpening = true;
    for (;;) {
      try {
        await this.#connection.open(Number.POSITIVE_INFINITY);
        return;
      } catch (error) {
        // Such as a refused password, which may be another one when the main thread connects next.
        log('no connection: %s', messageOf(error));
        await new Promise((resolve) => clock.setTimeout(() => resolve(undefined), ttlMs));
      }
    }
  }

  #look(): void {
    const nowMs = clock.now();
    const moves = Atomics.load(cells, CELL.moves);
    if (moves !== this.#moves) {
      this.#moves = moves;
      this.#movedMs = nowMs;
    }
    const { link } = this.#connection;
    if (!this.#lease || !link || this.#isRenewing) return;
    const duty = standbyDuty({
      nowMs,
      ttlMs: this.#lease.ttl * 1_000,
      movedMs: this.#movedMs,
      stallLimitMs,
      renewedAtMs: Math.max(this.#renewedAtMs, Number(Atomics.load(cells, CELL.renewedAtMs))),
      provedMs: this.#triedMs,
    });
    if (duty === 'nothing') return;
    this.#isRenewing = true;
    this.#triedMs = nowMs;
    void this.#renew(this.#lease, duty)
      .catch((error: unknown) => log('not renewed: %s', messageOf(error)))
      .finally(() => {
        this.#isRenewing = false;
      });
  }

  async #renew(lease: Lease, duty: 'renew' | 'prove'): Promise<void> {
    const { link } = this.#connection;
    if (!link) return;
    const sentMs = await renewOnce(this.#connection, lease, link);
    if (this.#lease?.id !== lease.id) return;
    if (sentMs === undefined) {
      this.#lease = undefined;
      this.#tell({ is: 'gone', leaseId: lease.id });
      return;
    }
    this.#renewedAtMs = sentMs;
    this.#tell({ is: 'renewed', leaseId: lease.id, sentMs });
    if (duty === 'renew') await this.#verify(lease.id);
  }

  /** The main thread cannot ask either which of its keys still stand. */
  async #verify(leaseId: string): Promise<void> {
    const askedAtMs = clock.now();
    const { callOptions } = this.#connection;
    const { ttl, keys } = await this.#connection.attempt((store) => store.leaseTimeToLive(leaseId, true, callOptions));
    if (ttl >= 0) this.#tell({ is: 'verified', leaseId, keys, askedAtMs });
  }

  #tell(report: StandbyReport): void {
    port.postMessage(report);
  }
}

new StandbyThread();
parentPort?.postMessage({ is: 'ready' } satisfies StandbyReport);
