import { changes, EtcdEphemeral, type Registration } from '../../src/index.ts';
import { DIRECTORY, type Goal, type Member, type MemberOptions, NameSet, VALUE } from './member.ts';

export class Counts {
  readonly #sums = new Map<string, { sum: number }>();

  bumpSum(name: string, n: number): void {
    const counter = this.#sums.get(name);
    if (counter) counter.sum += n;
    else this.#sums.set(name, { sum: n });
  }

  bumpTime(): { end(): void } {
    return { end() {} };
  }

  sum(name: string): number {
    return this.#sums.get(`ephemeral.etcd.${name}`)?.sum ?? 0;
  }
}

export class OurMember implements Member {
  readonly client: EtcdEphemeral;
  readonly #counts: Counts;
  readonly #set = new NameSet();
  #registration: Registration | undefined;

  private constructor(client: EtcdEphemeral, counts: Counts) {
    this.client = client;
    this.#counts = counts;
  }

  static async open(via: 'direct' | 'mirror', options: MemberOptions): Promise<OurMember> {
    const { endpoint, namespace, ttl, index, heartbeat } = options;
    const stats = new Counts();
    const client = await EtcdEphemeral.connect({
      hosts: endpoint,
      namespace,
      ttl,
      heartbeat,
      stats,
      connectTimeout: 60,
    });
    const member = new OurMember(client, stats);
    // The session begins with the first key: not on the clock.
    const warm = await client.addKey(`/warm/${index}`, VALUE);
    await warm.remove();
    if (options.onChange) await member.#watch(via, options.onChange);
    return member;
  }

  get isMaster(): boolean {
    return this.#counts.sum('mirror.masterships') > 0;
  }

  get heard() {
    return { messages: this.#counts.sum('list.messages'), events: this.#counts.sum('list.listings') };
  }

  async join(name: string): Promise<void> {
    this.#registration = await this.client.addKey(`${DIRECTORY}/${name}`, VALUE);
  }

  async leave(): Promise<void> {
    const registration = this.#registration;
    this.#registration = undefined;
    await registration?.remove();
  }

  holds(goal: Goal): boolean {
    return this.#set.holds(goal);
  }

  names(): readonly string[] {
    return this.#set.names();
  }

  close(): Promise<void> {
    return this.client.close();
  }

  #watch(via: 'direct' | 'mirror', onChange: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      // As by hand: a set kept from what came and went.
      this.client
        .list(DIRECTORY, { watch: true, via, missing: 'wait' })
        .pipe(changes())
        .subscribe({
          next: ({ added, removed }) => {
            for (const name of removed) this.#set.delete(name);
            for (const name of added) this.#set.add(name);
            onChange();
            resolve();
          },
          error: reject,
        });
    });
  }
}
