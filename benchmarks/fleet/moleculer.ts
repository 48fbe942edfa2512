/**
 * A Moleculer broker with its etcd3 discoverer. It does not watch: at each heartbeat every broker puts its own key and reads the keys
 * of all. Its messages between brokers stay within the process: only the discovery is of interest here.
 */
import { createRequire } from 'node:module';
import type { Goal, Member, MemberOptions } from './member.ts';

interface Broker {
  readonly registry: {
    readonly nodes: { list(filter: { onlyAvailable: boolean }): readonly { readonly id: string }[] };
  };
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface Discoverer {
  PREFIX: string;
  BEAT_KEY: string;
  INFO_KEY: string;
  init(registry: object): void;
}

interface MoleculerModule {
  readonly ServiceBroker: new (options: object) => Broker;
  readonly Discoverers: { readonly Etcd3: new (options: object) => Discoverer };
}

const PEERS = new URL('../../../peers/package.json', import.meta.url);
const moleculer = createRequire(PEERS)('moleculer') as MoleculerModule;

/** Its keys begin with `moleculer-` wherever else they lie: here they are to stay within the namespace. */
class NamespacedDiscoverer extends moleculer.Discoverers.Etcd3 {
  readonly #namespace: string;

  constructor(namespace: string, options: object) {
    super(options);
    this.#namespace = namespace;
  }

  override init(registry: object): void {
    super.init(registry);
    for (const key of ['PREFIX', 'BEAT_KEY', 'INFO_KEY'] as const) this[key] = `${this.#namespace}/${this[key]}`;
  }
}

/** Of the ttl, as for put-heartbeats: the same loss of heartbeats is survived. */
const HEARTBEAT_FRACTION = 0.4;

export class MoleculerMember implements Member {
  readonly isMaster = false;
  /** It hears nothing: it asks. */
  readonly heard = { messages: 0, events: 0 };
  readonly #broker: Broker;

  private constructor(broker: Broker) {
    this.#broker = broker;
  }

  static async open({ endpoint, namespace, ttl, index }: MemberOptions): Promise<MoleculerMember> {
    const grpcOptions = { 'grpc.use_local_subchannel_pool': 1 };
    const broker = new moleculer.ServiceBroker({
      nodeID: `node-${index}`,
      logger: false,
      transporter: 'fake',
      registry: {
        discoverer: new NamespacedDiscoverer(namespace, {
          etcd: { hosts: endpoint, grpcOptions },
          heartbeatInterval: ttl * HEARTBEAT_FRACTION,
          heartbeatTimeout: ttl,
        }),
      },
    });
    await broker.start();
    return new MoleculerMember(broker);
  }

  async join(): Promise<void> {}

  async leave(): Promise<void> {}

  holds({ size }: Goal): boolean {
    return this.#list().length === size;
  }

  names(): readonly string[] {
    return this.#list();
  }

  close(): Promise<void> {
    return this.#broker.stop();
  }

  #list(): string[] {
    return this.#broker.registry.nodes
      .list({ onlyAvailable: true })
      .map(({ id }) => id)
      .sort();
  }
}
