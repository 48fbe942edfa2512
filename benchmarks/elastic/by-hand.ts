/** An etcd cluster that is driven by hand: the same binary and flags as the elastic one's, and each call made as soon as it is taken. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { etcdArguments } from '../../src/elastic/etcd-arguments.ts';
import { findEtcd } from '../../src/elastic/etcd-binary.ts';
import { EtcdProcess } from '../../src/elastic/etcd-process.ts';
import { ClusterAdmin, type EndpointStatus } from '../../src/etcd/cluster-admin.ts';
import { bindOrphan, temporaryFolder } from '../../test/support/children.ts';
import { freePorts } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';

const CALL_TIMEOUT_MS = 2_000;
/** etcd takes no new member before each voter has been connected for 5 s: whoever asks, asks again. */
const PATIENCE_MS = 60_000;

export interface HandMember {
  readonly name: string;
  readonly clientUrl: string;
  readonly serverUrl: string;
  readonly folder: string;
  id: string;
  process?: EtcdProcess | undefined;
}

export function logOf({ folder }: HandMember): string {
  return join(folder, 'etcd.log');
}

export class ByHand {
  readonly admin = new ClusterAdmin();
  readonly members: HandMember[] = [];
  readonly #folder = temporaryFolder('by-hand-');

  async prepare(): Promise<HandMember> {
    const [client, server] = await freePorts(2);
    const name = `m${this.members.length + 1}`;
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    const member = {
      name,
      folder,
      clientUrl: `http://127.0.0.1:${client}`,
      serverUrl: `http://127.0.0.1:${server}`,
      id: '',
    };
    this.members.push(member);
    return member;
  }

  async boot(member: HandMember): Promise<void> {
    await this.#spawn(member, {
      initialCluster: `${member.name}=${member.serverUrl}`,
      state: 'new',
      token: member.name,
    });
    member.id = (await this.ready(member)).memberId;
  }

  async restart(member: HandMember): Promise<void> {
    await this.#spawn(member, undefined);
    await this.ready(member);
  }

  /** Part of the cluster, with a quorum behind it. */
  ready(member: HandMember): Promise<EndpointStatus> {
    return until(
      async () => {
        await this.admin.proveQuorum(member.clientUrl, CALL_TIMEOUT_MS);
        return this.admin.status(member.clientUrl, CALL_TIMEOUT_MS);
      },
      `${member.name} to be ready`,
      PATIENCE_MS,
    );
  }

  /** Adds a learner and starts it. Resolves when it runs as such. */
  async join(member: HandMember, through: HandMember): Promise<void> {
    const added = await until(
      () => this.admin.addLearner(through.clientUrl, [member.serverUrl], CALL_TIMEOUT_MS),
      `${member.name} to be added`,
      PATIENCE_MS,
    );
    member.id = added.id;
    const initialCluster = added.members.map(
      ({ id, name, peerUrls }) => `${id === added.id ? member.name : name}=${peerUrls[0]}`,
    );
    await this.#spawn(member, { initialCluster: initialCluster.join(), state: 'existing' });
    await until(
      async () => (await this.admin.status(member.clientUrl, CALL_TIMEOUT_MS)).leader !== '0',
      `${member.name} to run as a learner`,
    );
  }

  async promote(member: HandMember, through: HandMember): Promise<void> {
    const call = () => this.admin.promote(through.clientUrl, member.id, CALL_TIMEOUT_MS).then(() => true);
    await until(call, `${member.name} to be promoted`, PATIENCE_MS);
  }

  async remove(member: HandMember, through: HandMember): Promise<void> {
    const call = () => this.admin.remove(through.clientUrl, member.id, CALL_TIMEOUT_MS).then(() => true);
    await until(call, `${member.name} to be removed`, PATIENCE_MS);
  }

  async kill(member: HandMember): Promise<void> {
    await member.process?.kill();
    await this.admin.forget(member.clientUrl);
  }

  async stop(member: HandMember): Promise<void> {
    await member.process?.stop();
    await this.admin.forget(member.clientUrl);
  }

  /** Among these. */
  async leaderOf(members: readonly HandMember[]): Promise<HandMember> {
    return until(async () => {
      const [first] = members.filter((member) => member.process?.isRunning);
      const { leader } = await this.admin.status(first?.clientUrl ?? '', CALL_TIMEOUT_MS);
      return members.find(({ id }) => id === leader);
    }, 'a leader');
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.process?.kill()));
    await this.admin.close();
  }

  async #spawn(member: HandMember, beginning: Parameters<typeof etcdArguments>[1]): Promise<void> {
    const binary = await findEtcd(undefined, process.env);
    const [clientUrls, serverUrls] = [[member.clientUrl], [member.serverUrl]];
    const config = {
      name: member.name,
      dataDir: join(member.folder, 'etcd'),
      clientUrls,
      advertiseClientUrls: clientUrls,
      serverUrls,
      advertiseServerUrls: serverUrls,
      tls: {},
      tuning: {},
    };
    const args = etcdArguments(config, beginning);
    member.process = await EtcdProcess.spawn(binary.path, args, logOf(member), undefined, ({ pid }) => bindOrphan(pid));
  }
}
