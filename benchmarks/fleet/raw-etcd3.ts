/** What one writes by hand with etcd3: a lease, a listing, a watch from the listing's revision on, a set kept from its events. */
import { Etcd3, type Lease } from 'etcd3';
import { DIRECTORY, type Goal, type Member, type MemberOptions, NameSet, VALUE } from './member.ts';

/**
 * etcd3 makes a channel for each service, which in a process of one client share a socket. Many clients in one process would all
 * share it; so each gets a pool of its own, and its services one channel.
 */
class SeparateEtcd3 extends Etcd3 {
  static async connect(hosts: string): Promise<SeparateEtcd3> {
    const grpcOptions: Record<string, unknown> = { 'grpc.use_local_subchannel_pool': 1 };
    const client = new SeparateEtcd3({ hosts, grpcOptions: grpcOptions as Record<string, number> });
    await client.pool.withConnection('KV', async ({ client: kv }) => {
      grpcOptions.channelOverride = kv.getChannel();
    });
    return client;
  }
}

export class RawEtcd3Member implements Member {
  readonly isMaster = false;
  readonly client: Etcd3;
  readonly heard = { messages: 0, events: 0 };
  readonly #prefix: string;
  readonly #lease: Lease;
  readonly #set = new NameSet();
  #key: string | undefined;

  private constructor(client: Etcd3, lease: Lease, prefix: string) {
    this.client = client;
    this.#lease = lease;
    this.#prefix = prefix;
  }

  static async open(options: MemberOptions): Promise<RawEtcd3Member> {
    const client = await SeparateEtcd3.connect(options.endpoint);
    const lease = client.lease(options.ttl);
    await lease.grant();
    const member = new RawEtcd3Member(client, lease, `${options.namespace}${DIRECTORY}/`);
    if (options.onChange) await member.#watch(options.onChange);
    return member;
  }

  async join(name: string): Promise<void> {
    this.#key = this.#prefix + name;
    await this.#lease.put(this.#key).value(VALUE);
  }

  async leave(): Promise<void> {
    if (this.#key !== undefined) await this.client.delete().key(this.#key);
    this.#key = undefined;
  }

  holds(goal: Goal): boolean {
    return this.#set.holds(goal);
  }

  names(): readonly string[] {
    return this.#set.names();
  }

  async close(): Promise<void> {
    await this.#lease.revoke();
    this.client.close();
  }

  async #watch(onChange: () => void): Promise<void> {
    const prefix = this.#prefix;
    const { kvs, header } = await this.client.getAll().prefix(prefix).exec();
    this.#set.replace(kvs.map((kv) => kv.key.toString().slice(prefix.length)));
    const from = String(Number(header.revision) + 1);
    const watcher = await this.client.watch().prefix(prefix).startRevision(from).create();
    watcher.on('data', ({ events }) => {
      this.heard.messages += 1;
      this.heard.events += events.length;
      for (const { type, kv } of events) {
        const name = kv.key.toString().slice(prefix.length);
        if (type === 'Delete') this.#set.delete(name);
        else this.#set.add(name);
      }
      onChange();
    });
  }
}
