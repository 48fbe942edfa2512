/** What an etcd cluster's administration takes: membership, status, leadership, alarms, snapshots. One connection an endpoint. */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AlarmAction, AlarmType, type IRangeResponse } from 'etcd3';
import { ConnectionError } from '../core/errors.ts';
import { messageOf } from '../core/log.ts';
import type { KeyValue } from '../core/store.ts';
import { parseEndpoint } from './endpoints.ts';
import { rangeRequest, toHeader, toRangeResult } from './messages.ts';
import { type Auth, type Credentials, resolveOptions, type Source } from './options.ts';
import { type RawStream, Transport } from './transport.ts';

export interface ClusterAdminOptions {
  readonly credentials?: Source<Credentials | undefined> | undefined;
  readonly auth?: Source<Auth | undefined> | undefined;
  readonly grpcOptions?: Readonly<Record<string, string | number>> | undefined;
  /** Members that may let a user log in, which a learner does not: etcd 3.5.30 tells its status to known users alone. */
  readonly voters?: (() => readonly string[]) | undefined;
}

/** Ids are decimal, as etcd's protocol has them; etcdctl prints them in hexadecimal. */
export interface ListedMember {
  readonly id: string;
  /** Empty until it has started once. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

export interface MemberList {
  readonly clusterId: string;
  readonly members: readonly ListedMember[];
}

export interface EndpointStatus {
  readonly clusterId: string;
  readonly memberId: string;
  /** `'0'` when it knows none. */
  readonly leader: string;
  readonly version: string;
  readonly dbSizeBytes: number;
  readonly dbSizeInUseBytes: number;
  readonly raftIndex: number;
  readonly raftAppliedIndex: number;
  readonly raftTerm: number;
  readonly isLearner: boolean;
  readonly errors: readonly string[];
  readonly revision: number;
}

export interface Peek {
  readonly clusterId: string;
  readonly kvs: readonly KeyValue[];
}

export interface LeaseTime {
  readonly leftS: number;
  readonly grantedS: number;
}

export type AlarmName = 'NOSPACE' | 'CORRUPT';

export interface Alarm {
  readonly memberId: string;
  readonly alarm: AlarmName;
}

interface RawHeader {
  readonly cluster_id: string;
  readonly member_id: string;
  readonly revision: string;
}

interface RawMember {
  readonly ID: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

interface RawStatus {
  readonly header: RawHeader;
  readonly version: string;
  readonly dbSize: string;
  readonly dbSizeInUse: string;
  readonly leader: string;
  readonly raftIndex: string;
  readonly raftAppliedIndex: string;
  readonly raftTerm: string;
  readonly isLearner: boolean;
  readonly errors: readonly string[];
}

/** A snapshot or a defragmentation moves the whole database; etcd's own limit for that is 8 GiB. */
const BULK_TIMEOUT_MS = 600_000;

const AUTH_TIMEOUT_MS = 5_000;

export class ClusterAdmin {
  readonly #options: ClusterAdminOptions;
  readonly #transports = new Map<string, Promise<Transport>>();
  /** Those that have made their connection: the call that does so has to say so. */
  readonly #connected = new WeakSet<Transport>();
  #closed = false;

  constructor(options: ClusterAdminOptions = {}) {
    this.#options = options;
  }

  async status(url: string, timeoutMs: number): Promise<EndpointStatus> {
    const raw = await this.#call<RawStatus>(url, 'Maintenance', 'status', {}, timeoutMs);
    return {
      clusterId: raw.header.cluster_id,
      memberId: raw.header.member_id,
      leader: raw.leader,
      version: raw.version,
      dbSizeBytes: Number(raw.dbSize),
      dbSizeInUseBytes: Number(raw.dbSizeInUse),
      raftIndex: Number(raw.raftIndex),
      // etcd 3.4 gives it as 0 on a member that has applied nothing since it started.
      raftAppliedIndex: Number(raw.raftAppliedIndex),
      raftTerm: Number(raw.raftTerm),
      isLearner: raw.isLearner,
      errors: raw.errors,
      revision: Number(raw.header.revision),
    };
  }

  /** A minority still answers this from what it last knew: a linearizable read beside it tells whether that is the truth. */
  async memberList(url: string, timeoutMs: number, linearizable = true): Promise<MemberList> {
    const request = { linearizable };
    return toMemberList(await this.#call<RawMembers>(url, 'Cluster', 'memberList', request, timeoutMs));
  }

  /** The reply lists all members, the new one among them: what its `--initial-cluster` is made from. */
  async addLearner(
    url: string,
    peerUrls: readonly string[],
    timeoutMs: number,
  ): Promise<MemberList & { readonly id: string }> {
    const request = { peerURLs: peerUrls, isLearner: true };
    const raw = await this.#call<RawMembers & { member: RawMember }>(url, 'Cluster', 'memberAdd', request, timeoutMs);
    return { ...toMemberList(raw), id: raw.member.ID };
  }

  async promote(url: string, memberId: string, timeoutMs: number): Promise<void> {
    await this.#call(url, 'Cluster', 'memberPromote', { ID: memberId }, timeoutMs);
  }

  async remove(url: string, memberId: string, timeoutMs: number): Promise<void> {
    await this.#call(url, 'Cluster', 'memberRemove', { ID: memberId }, timeoutMs);
  }

  async updatePeerUrls(url: string, memberId: string, peerUrls: readonly string[], timeoutMs: number): Promise<void> {
    await this.#call(url, 'Cluster', 'memberUpdate', { ID: memberId, peerURLs: peerUrls }, timeoutMs);
  }

  /** Only the leader itself takes this. */
  async moveLeader(leaderUrl: string, to: string, timeoutMs: number): Promise<void> {
    await this.#call(leaderUrl, 'Maintenance', 'moveLeader', { targetID: to }, timeoutMs);
  }

  /** Seconds a lease has left, and was granted for; `undefined` when there is none. */
  async leaseTime(url: string, id: string, timeoutMs: number): Promise<LeaseTime | undefined> {
    const answer = await this.#call<{ TTL: string; grantedTTL: string }>(
      url,
      'Lease',
      'leaseTimeToLive',
      { ID: id },
      timeoutMs,
    );
    return Number(answer.TTL) < 0 ? undefined : { leftS: Number(answer.TTL), grantedS: Number(answer.grantedTTL) };
  }

  async alarms(url: string, timeoutMs: number): Promise<readonly Alarm[]> {
    const request = { action: AlarmAction.Get, memberID: '0', alarm: AlarmType.None };
    const raw = await this.#call<{ alarms: { memberID: string; alarm: string | number }[] }>(
      url,
      'Maintenance',
      'alarm',
      request,
      timeoutMs,
    );
    return raw.alarms.map(({ memberID, alarm }) => ({ memberId: memberID, alarm: toAlarmName(alarm) }));
  }

  async disarm(url: string, { memberId, alarm }: Alarm, timeoutMs: number): Promise<void> {
    const type = alarm === 'NOSPACE' ? AlarmType.Nospace : AlarmType.Corrupt;
    const request = { action: AlarmAction.Deactivate, memberID: memberId, alarm: type };
    await this.#call(url, 'Maintenance', 'alarm', request, timeoutMs);
  }

  async compact(url: string, revision: number, timeoutMs: number): Promise<void> {
    await this.#call(url, 'KV', 'compact', { revision: String(revision), physical: true }, timeoutMs);
  }

  /** The member answers nothing else meanwhile. */
  async defragment(url: string): Promise<void> {
    await this.#call(url, 'Maintenance', 'defragment', {}, BULK_TIMEOUT_MS);
  }

  /** Writes the member's whole database to a new file. */
  async snapshot(url: string, path: string): Promise<void> {
    // A stream is not begun again with a new token: a call before it gets that where it is needed.
    if (this.#options.auth !== undefined) await this.proveQuorum(url, AUTH_TIMEOUT_MS);
    const transport = await this.#at(url);
    const stream = transport.download<{ blob: Buffer }>('Maintenance', 'snapshot', {}, BULK_TIMEOUT_MS);
    try {
      await pipeline(Readable.from(blobsOf(stream)), createWriteStream(path, { flags: 'wx', mode: 0o600 }));
    } catch (failure) {
      throw transport.translate(failure as Error);
    } finally {
      transport.release(stream);
    }
  }

  /** A linearizable read: it succeeds only where a quorum stands behind the member. */
  async proveQuorum(url: string, timeoutMs: number): Promise<void> {
    await this.#call(url, 'KV', 'range', { key: Buffer.from('\0'), count_only: true }, timeoutMs);
  }

  async put(url: string, key: string, value: string, timeoutMs: number): Promise<void> {
    await this.#call(url, 'KV', 'put', { key: Buffer.from(key), value: Buffer.from(value) }, timeoutMs);
  }

  /** What a member knows by itself, quorum or not: a learner answers this, and little else. */
  async peek(url: string, prefix: string, timeoutMs: number): Promise<Peek> {
    const request = { ...rangeRequest({ type: 'range', target: { prefix } }), serializable: true };
    const response = await this.#call<IRangeResponse>(url, 'KV', 'range', request, timeoutMs);
    const header = toHeader(response.header);
    return { clusterId: header.clusterId, kvs: toRangeResult(response, { type: 'range', target: { prefix } }).kvs };
  }

  /** Forgets the connection to an endpoint, which a restarted or exchanged server leaves useless. */
  async forget(url: string): Promise<void> {
    const transport = this.#transports.get(url);
    this.#transports.delete(url);
    (await transport?.catch(() => undefined))?.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#transports.keys()].map((url) => this.forget(url)));
  }

  async #call<Response>(
    url: string,
    service: 'KV' | 'Lease' | 'Cluster' | 'Maintenance',
    method: string,
    request: object,
    timeoutMs: number,
  ): Promise<Response> {
    if (timeoutMs <= 0)
      throw new ConnectionError(`${method} was not sent to ${url}: its time was over before it began`);
    const transport = await this.#at(url);
    try {
      const call = () => transport.call<Response>(service, method, request, timeoutMs);
      const response = this.#connected.has(transport) ? await call() : await transport.connecting(call);
      this.#connected.add(transport);
      return response;
    } catch (error) {
      if (await this.#borrowToken(url, transport, error, timeoutMs)) {
        this.#connected.add(transport);
        return await transport.call<Response>(service, method, request, timeoutMs);
      }
      if (error instanceof ConnectionError && !isOwnWord(error)) await this.forget(url);
      throw error;
    }
  }

  /** For a learner that lets nobody log in: the token of a voter, which it knows as well. A newer one where that has run out. */
  async #borrowToken(url: string, learner: Transport, error: unknown, timeoutMs: number): Promise<boolean> {
    const { auth, voters } = this.#options;
    if (auth === undefined || !voters || !isForVotersOnly(error)) return false;
    for (const other of voters().filter((one) => one !== url)) {
      try {
        const voter = await this.#at(other);
        const login = () => voter.authenticate(timeoutMs);
        if (voter.token === undefined || voter.token === learner.token)
          await (this.#connected.has(voter) ? login() : voter.connecting(login));
        this.#connected.add(voter);
        if (voter.token === undefined) continue;
        learner.present(voter.token);
        return true;
      } catch {
        // Another learner, or nobody.
      }
    }
    return false;
  }

  #at(url: string): Promise<Transport> {
    if (this.#closed) throw new ConnectionError('the cluster’s administration was closed');
    let transport = this.#transports.get(url);
    if (transport === undefined) {
      transport = this.#open(url);
      transport.catch(() => this.#transports.delete(url));
      this.#transports.set(url, transport);
    }
    return transport;
  }

  async #open(url: string): Promise<Transport> {
    const { grpcOptions } = this.#options;
    const { credentials, auth } = await resolveOptions({ ...this.#options, hosts: url });
    const endpoint = parseEndpoint(url, credentials !== undefined);
    // The first call that is refused for want of a token gets one. A learner has none to give, and asks for none where it matters.
    return Transport.open({ endpoint, credentials, auth, grpcOptions });
  }
}

/** Whether a learner said that it does not do this. */
export function isForVotersOnly(error: unknown): boolean {
  return /not supported for learner/.test(messageOf(error));
}

/** What etcd itself refuses for now, under the code of an unreachable server: the connection has just brought its answer. */
function isOwnWord(error: ConnectionError): boolean {
  return isForVotersOnly(error) || /unhealthy cluster/.test(error.message);
}

interface RawMembers {
  readonly header: RawHeader;
  readonly members: readonly RawMember[];
}

function toMemberList({ header, members }: RawMembers): MemberList {
  return {
    clusterId: header.cluster_id,
    members: members.map(({ ID, name, peerURLs, clientURLs, isLearner }) => ({
      id: ID,
      name,
      peerUrls: peerURLs,
      clientUrls: clientURLs,
      isLearner,
    })),
  };
}

function toAlarmName(alarm: string | number): AlarmName {
  return String(alarm).toUpperCase() === 'NOSPACE' || alarm === AlarmType.Nospace ? 'NOSPACE' : 'CORRUPT';
}

async function* blobsOf(stream: RawStream<object, { blob: Buffer }>): AsyncGenerator<Buffer> {
  for await (const { blob } of stream as unknown as AsyncIterable<{ blob: Buffer }>) yield blob;
}
