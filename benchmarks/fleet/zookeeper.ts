/** What one writes by hand with ZooKeeper: an ephemeral node, and a listing that is read again at each notice. */
import { createRequire } from 'node:module';
import { DIRECTORY, type Goal, type Member, type MemberOptions, NameSet, VALUE } from './member.ts';

/** The parts of node-zookeeper-client that are used; it brings no types. */
interface ZkClient {
  connect(): void;
  close(): void;
  once(event: 'connected', listener: () => void): void;
  mkdirp(path: string, callback: (error: Error | null) => void): void;
  create(path: string, data: Buffer, mode: number, callback: (error: Error | null) => void): void;
  remove(path: string, version: number, callback: (error: Error | null) => void): void;
  getChildren(path: string, watcher: () => void, callback: (error: Error | null, names: string[]) => void): void;
}

interface ZkModule {
  createClient(address: string, options: { sessionTimeout: number; spinDelay: number; retries: number }): ZkClient;
  readonly CreateMode: { readonly EPHEMERAL: number };
}

const PEERS = new URL('../../../peers/package.json', import.meta.url);
const zookeeper = createRequire(PEERS)('node-zookeeper-client') as ZkModule;

function done(call: (callback: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())));
}

export class ZooKeeperMember implements Member {
  readonly isMaster = false;
  readonly heard = { messages: 0, events: 0 };
  readonly #client: ZkClient;
  readonly #directory: string;
  readonly #set = new NameSet();
  #path: string | undefined;

  private constructor(client: ZkClient, directory: string) {
    this.#client = client;
    this.#directory = directory;
  }

  static async open({ endpoint, namespace, ttl, onChange }: MemberOptions): Promise<ZooKeeperMember> {
    const client = zookeeper.createClient(endpoint, { sessionTimeout: ttl * 1_000, spinDelay: 100, retries: 3 });
    await new Promise<void>((resolve) => {
      client.once('connected', resolve);
      client.connect();
    });
    const directory = namespace + DIRECTORY;
    await done((callback) => client.mkdirp(directory, callback));
    const member = new ZooKeeperMember(client, directory);
    if (onChange) await member.#list(onChange);
    return member;
  }

  join(name: string): Promise<void> {
    const path = `${this.#directory}/${name}`;
    this.#path = path;
    const { EPHEMERAL } = zookeeper.CreateMode;
    return done((callback) => this.#client.create(path, Buffer.from(VALUE), EPHEMERAL, callback));
  }

  async leave(): Promise<void> {
    const path = this.#path;
    this.#path = undefined;
    if (path !== undefined) await done((callback) => this.#client.remove(path, -1, callback));
  }

  holds(goal: Goal): boolean {
    return this.#set.holds(goal);
  }

  names(): readonly string[] {
    return this.#set.names();
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  /** A watch tells once, and only that something changed. */
  #list(onChange: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const onNotice = () => {
        this.heard.events += 1;
        void this.#list(onChange).catch(() => {});
      };
      this.#client.getChildren(this.#directory, onNotice, (error, names) => {
        if (error) return reject(error);
        this.heard.messages += 1;
        this.#set.replace(names);
        onChange();
        resolve();
      });
    });
  }
}
