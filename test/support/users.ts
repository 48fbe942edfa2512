/** An etcd with authentication on, and etcdctl as its root. */
import { type EtcdOptions, type EtcdProcess, startEtcd } from './etcd-process.ts';
import { etcdctl } from './etcdctl.ts';

export const ROOT = { username: 'root', password: 'root-secret' };

export interface EtcdWithUsers {
  readonly etcd: EtcdProcess;
  /** Runs etcdctl as root. */
  root(...args: string[]): Promise<string>;
  /** Adds a user; the password is the name and `-secret`. */
  addUser(username: string, role?: string): Promise<{ username: string; password: string }>;
  destroy(): Promise<void>;
}

/** The least work that bcrypt allows: what is tested is not how long a password would take to guess. */
const CHEAP_PASSWORDS = ['--bcrypt-cost', '4'];

export async function startEtcdWithUsers({ extraArgs = [], ...options }: EtcdOptions = {}): Promise<EtcdWithUsers> {
  const etcd = await startEtcd({ ...options, extraArgs: [...CHEAP_PASSWORDS, ...extraArgs] });
  const root = (...args: string[]) => etcdctl(etcd.endpoint, '--user', `${ROOT.username}:${ROOT.password}`, ...args);
  try {
    await etcdctl(etcd.endpoint, 'user', 'add', `${ROOT.username}:${ROOT.password}`);
    await etcdctl(etcd.endpoint, 'user', 'grant-role', ROOT.username, 'root');
    await etcdctl(etcd.endpoint, 'auth', 'enable');
  } catch (error) {
    await etcd.destroy();
    throw error;
  }
  return {
    etcd,
    root,
    addUser: async (username, role) => {
      const password = `${username}-secret`;
      await root('user', 'add', `${username}:${password}`);
      if (role !== undefined) await root('user', 'grant-role', username, role);
      return { username, password };
    },
    destroy: () => etcd.destroy(),
  };
}
