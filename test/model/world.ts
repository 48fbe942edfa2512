/** Runs the commands of a program on one store, and says what came of it in terms that mean the same on any store. */
import type {
  Compare,
  Header,
  KeyValue,
  Op,
  OpResult,
  RangeOp,
  RangeResult,
  Store,
  WatchEvent,
  WatchStream,
} from '../../src/core/store.ts';
import type { Command, ComparePlan, LeaseRef, OpPlan, RangePlan } from './program.ts';

const CALL = { timeoutMs: 10_000 };
const UNKNOWN_LEASE = '17';
/** What is left of a lease may be a little less than granted: a real clock runs. Seconds. */
const SLOWNESS = 60;

/** What a watch has said so far. */
interface Heard {
  created: boolean;
  ended: string | undefined;
  readonly messages: (readonly WatchEvent[])[];
}

export class World {
  readonly watches: Heard[] = [];
  /** A key under each watch's target. */
  readonly #watchedKeys = new Set<string>();
  streamError: Error | undefined;
  readonly #stream: WatchStream;
  readonly #leases: string[] = [];

  private constructor(
    private readonly store: Store,
    /** The revision that all others are counted from. */
    readonly base: number,
    private readonly compact: (revision: number) => Promise<void>,
  ) {
    this.#stream = store.openWatch({
      onCreated: (id) => {
        this.#heard(id).created = true;
      },
      onEvents: (id, events) => this.#heard(id).messages.push(events),
      onCanceled: (id, error) => {
        this.#heard(id).ended = error.name;
      },
      onEnd: (error) => {
        this.streamError = error;
      },
    });
  }

  /** Empties the store, so that programs do not see each other. */
  static async create(store: Store, compact: (revision: number) => Promise<void>): Promise<World> {
    const everything = { type: 'delete', target: { prefix: '' } } as const;
    const { header } = await store.txn({ compares: [], success: [everything] }, CALL);
    return new World(store, header.revision, compact);
  }

  async close(): Promise<void> {
    this.#stream.close();
    for (const lease of this.#leases) await this.store.leaseRevoke(lease, CALL);
  }

  async run(command: Command): Promise<unknown> {
    try {
      return await this.#answer(command);
    } catch (error) {
      return (error as Error).name;
    }
  }

  /** Makes a new key and a new watch that tells of it. */
  async putAndWatch(key: string): Promise<void> {
    const { header } = await this.store.txn({ compares: [], success: [{ type: 'put', key, value: '' }] }, CALL);
    await this.run({ do: 'watch', target: { key }, start: this.#at(header) });
  }

  /** Gives every watch something to tell: only that shows that etcd has served it up to the present. */
  async touchWatched(): Promise<void> {
    const success = [...this.#watchedKeys].map((key) => ({ type: 'put', key, value: '' }) as const);
    await this.store.txn({ compares: [], success }, CALL);
  }

  /** How many events each watch has told of; -1 when it was ended. */
  progress(): string {
    return this.watches
      .map(({ created, ended, messages }) => (ended ? -1 : created ? messages.flat().length : 'not created'))
      .join();
  }

  told(): unknown {
    return this.watches.map(({ ended, messages }) => ({
      ended,
      events: messages.flat().map((event) => this.#event(event)),
    }));
  }

  /** Whether one revision of a watch came in two messages. */
  hasSplitRevision(): boolean {
    return this.watches.some(({ messages }) =>
      messages.some((message, i) => i > 0 && message[0]?.kv.modRevision === messages[i - 1]?.at(-1)?.kv.modRevision),
    );
  }

  async #answer(command: Command): Promise<unknown> {
    switch (command.do) {
      case 'txn': {
        const { compares, success, failure } = command;
        const txn = {
          compares: compares.map((plan) => this.#compare(plan)),
          success: this.#ops(success),
          failure: this.#ops(failure),
        };
        const { header, succeeded, results } = await this.store.txn(txn, CALL);
        return { at: this.#at(header), succeeded, results: results.map((result) => this.#result(result)) };
      }
      case 'range': {
        const result = await this.store.range(this.#range(command.range), CALL);
        return { at: this.#at(result.header), ...this.#page(result) };
      }
      case 'pages':
        return this.#pages(command);
      case 'grant': {
        const { id, ttl } = await this.store.leaseGrant(command.ttl, CALL);
        this.#leases.push(id);
        return ttl;
      }
      case 'revoke':
        return this.store.leaseRevoke(this.#lease(command.lease), CALL);
      case 'keepAlive':
        return this.#keepAlive(this.#lease(command.lease));
      case 'timeToLive': {
        const status = await this.store.leaseTimeToLive(this.#lease(command.lease), command.withKeys, CALL);
        const left = status.grantedTtl - status.ttl;
        return {
          granted: status.grantedTtl,
          left: left >= 0 && left < SLOWNESS ? 'about all' : status.ttl,
          // etcd gives them in any order.
          keys: [...status.keys].sort(),
        };
      }
      case 'watch':
        this.#watchedKeys.add('key' in command.target ? command.target.key : `${command.target.prefix}touched`);
        this.watches.push({ created: false, ended: undefined, messages: [] });
        this.#stream.create(this.watches.length, { target: command.target, startRevision: this.base + command.start });
        return;
      case 'cancel': {
        const heard = this.watches[command.watch - 1];
        if (heard) heard.ended ??= 'cancelled';
        this.#stream.cancel(command.watch);
        return;
      }
      case 'compact':
        return this.compact(this.base + command.revision);
    }
  }

  async #pages({ target, limit, revision }: Command & { readonly do: 'pages' }): Promise<unknown> {
    const pages: unknown[] = [];
    let from: Uint8Array | undefined;
    do {
      const op = { type: 'range', target, limit, from, revision: revision && this.base + revision } as const;
      const result = await this.store.range(op, CALL);
      pages.push(this.#page(result));
      from = result.next;
    } while (from);
    return pages;
  }

  #keepAlive(id: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const settle = (done: () => void) => {
        stream.close();
        done();
      };
      const stream = this.store.openKeepAlive({
        onAlive: (leaseId, ttl) =>
          settle(leaseId === id ? () => resolve(ttl) : () => reject(new Error(`not ${leaseId}`))),
        onEnd: (error) => settle(() => reject(error)),
      });
      stream.send(id);
    });
  }

  #ops(plans: readonly OpPlan[]): Op[] {
    return plans.map((plan) => {
      if (plan.type === 'put') return { ...plan, lease: plan.lease === 0 ? undefined : this.#lease(plan.lease) };
      return plan.type === 'range' ? this.#range(plan) : plan;
    });
  }

  #range(plan: RangePlan): RangeOp {
    const { revision, maxCreateRevision } = plan;
    return {
      ...plan,
      revision: revision && this.base + revision,
      maxCreateRevision: maxCreateRevision && this.base + maxCreateRevision,
    };
  }

  #compare({ field, operand, ...rest }: ComparePlan): Compare {
    if (field === 'lease') return { ...rest, field, operand: this.#lease(operand) };
    return { ...rest, field, operand: field === 'version' || operand === 0 ? operand : this.base + operand };
  }

  #lease(ref: LeaseRef): string {
    if (ref === 0) return '0';
    return (ref > 0 && this.#leases[(ref - 1) % this.#leases.length]) || UNKNOWN_LEASE;
  }

  #heard(id: number): Heard {
    return this.watches[id - 1] as Heard;
  }

  #at(header: Header): number {
    return header.revision - this.base;
  }

  #result(result: OpResult): unknown {
    return result.type === 'range' ? this.#page(result) : result;
  }

  #page({ kvs, count, next }: RangeResult) {
    return { kvs: kvs.map((kv) => this.#keyValue(kv)), count, next: next && Buffer.from(next).toString('hex') };
  }

  #event({ type, kv }: WatchEvent) {
    return { type, ...this.#keyValue(kv) };
  }

  #keyValue({ key, value, createRevision, modRevision, version, lease }: KeyValue) {
    return {
      key,
      value: Buffer.from(value).toString('hex'),
      created: createRevision && createRevision - this.base,
      modified: modRevision - this.base,
      version,
      lease: lease === '0' ? 'none' : `lease ${this.#leases.indexOf(lease)}`,
    };
  }
}
