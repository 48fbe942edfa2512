/** What the demo's processes are told to do, and what they tell. */
import type { HostStatus } from '../elastic.ts';
import type { Heartbeat, Listing } from '../index.ts';

/** Seconds. The shortest that etcd grants: the demo is to show a crash, not to wait for it. */
export const TTL = 2;
/** A key with heartbeat `put` is written again that often. */
export const REFRESH_PERIOD_MS = TTL * 400;
/** Where the services register. */
export const DIRECTORY = '/services/web';

export interface Store {
  readonly endpoints: readonly string[];
  readonly namespace: string;
}

export interface KeeperTask {
  readonly role: 'keeper';
  /** Of an etcd that runs already; without, one is started. */
  readonly endpoints: readonly string[] | undefined;
  readonly namespace: string;
}

export interface ServiceTask {
  readonly role: 'service';
  readonly store: Store;
  readonly name: string;
  readonly heartbeat: Heartbeat;
}

export interface GatewayTask {
  readonly role: 'gateway';
  readonly store: Store;
}

export interface WatchersTask {
  readonly role: 'watchers';
  readonly store: Store;
}

/** A host of an elastic cluster, with an etcd of its own where it is nominated. */
export interface HostTask {
  readonly role: 'host';
  readonly name: string;
  readonly clientUrl: string;
  readonly serverUrl: string;
  readonly seeds: readonly string[];
  /** The demo's. What is the host's in there goes with its process. */
  readonly folder: string;
}

export type Task = KeeperTask | ServiceTask | GatewayTask | WatchersTask | HostTask;

export interface KeeperReport {
  readonly endpoints: readonly string[];
  /** Such as `3.5.16`. */
  readonly etcdVersion: string;
  /** Undefined when it was started by others. */
  readonly etcdPid: number | undefined;
}

export interface ServiceReport {
  readonly address: string;
  /** Messages that its watch of the list brought, and as the mirror's master its watch of the directory. */
  readonly heard: number;
  /** Refreshes among them: only a master hears any. */
  readonly refreshes: number;
  /** How often it became master. */
  readonly masterships: number;
}

export interface Traffic {
  readonly sent: number;
  readonly served: number;
  readonly failed: number;
}

export interface GatewayReport {
  readonly status: Listing['status'];
  readonly listed: readonly { readonly name: string; readonly address: string }[];
  /** By the service's name. */
  readonly traffic: Readonly<Record<string, Traffic>>;
}

/** Of watchers of one kind, one item for each. */
export interface WatcherReport {
  /** Messages received. */
  readonly heard: number;
  /** The names it shows, joined. */
  readonly list: string;
}

export interface WatchersReport {
  readonly mirrored: readonly WatcherReport[];
  readonly direct: readonly WatcherReport[];
}

export interface ReportOf {
  keeper: KeeperReport;
  service: ServiceReport;
  gateway: GatewayReport;
  watchers: WatchersReport;
  host: HostStatus;
}

export type Role = keyof ReportOf;

/** From the demo to one of its processes. What ends one is SIGTERM. */
export type Order =
  | { readonly type: 'report'; readonly asked: number }
  | { readonly type: 'grow'; readonly to: number };

/** The first report says: ready. */
export type Answer<Report> =
  | { readonly type: 'report'; readonly report: Report; readonly asked: number | undefined }
  | { readonly type: 'failed'; readonly reason: string };
