/**
 * What a fleet process is told and what it answers: one JSON object a line, each answer with the number of its order. A fleet in any
 * language can take part that speaks this.
 */

export interface OpenOrder {
  readonly op: 'open';
  /** Members, each with a connection of its own, each a watcher and a registrar. */
  readonly n: number;
  /** Where the store listens: a URL of etcd, or `host:port` for ZooKeeper. */
  readonly endpoint: string;
  /** Nothing is touched outside this prefix. */
  readonly namespace: string;
  /** Seconds. */
  readonly ttl: number;
  /** How registrations are kept alive, where there is a choice. */
  readonly heartbeat: 'lease' | 'put';
  /** Nobody has heard anything for so long (ms): a storm is over, with all that it leads to. */
  readonly quietMs: number;
}

export interface OpenAnswer {
  /** Connections that this process holds to the store. */
  readonly sockets: number;
}

export interface StormOrder {
  readonly op: 'storm';
  readonly phase: 'join' | 'leave' | 'restart';
  /** Milliseconds over which the members' calls are spread; 0: all at once. */
  readonly spreadMs: number;
}

export interface StormAnswer {
  /** From the last member's call until the last member has seen the end. */
  readonly ms: number;
  /** Answers of the store that carried events, at each member. */
  readonly messages: readonly number[];
  readonly events: readonly number[];
  /** At the member that is master of a mirror. */
  readonly masterMessages: number;
  readonly bytesRead: number;
  readonly cpuMs: number;
  /** Of the members' final lists: one when they agree. */
  readonly checksums: readonly string[];
}

export interface ChangesOrder {
  readonly op: 'changes';
  readonly count: number;
  /** Open loop: a change begins when its time has come, and its latency counts from there. */
  readonly intervalMs: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export interface ChangesAnswer {
  /** From a change's time until every member has it. */
  readonly latenciesMs: readonly number[];
  /** From a change's time until a member has it, over all members and all changes. */
  readonly watcherMs: Percentiles;
  readonly checksums: readonly string[];
}

/** Nothing happens but heartbeats. */
export interface IdleOrder {
  readonly op: 'idle';
  readonly ms: number;
}

export interface IdleAnswer {
  readonly ms: number;
  readonly messages: readonly number[];
  readonly masterMessages: number;
  /** By all but the master. */
  readonly bytesRead: number;
  readonly masterBytesRead: number;
  readonly cpuMs: number;
  readonly checksums: readonly string[];
}

/** Registers one more name, or takes it away. */
export interface ProbeOrder {
  readonly op: 'probe';
  readonly joins: boolean;
}

/** Resolves when every member's list has so many names. */
export interface AwaitOrder {
  readonly op: 'await';
  readonly size: number;
}

export interface AwaitAnswer {
  /** By the system's monotonic clock, which all processes share: nanoseconds, as text. */
  readonly atNs: string;
}

/** Many keys in one process. Needs no fleet. */
export interface RegisterOrder {
  readonly op: 'register';
  readonly kind: 'ours' | 'etcd3';
  readonly endpoint: string;
  readonly namespace: string;
  readonly keys: number;
  /** Calls under way at the same time. */
  readonly concurrency: number;
  /** Seconds. */
  readonly ttl: number;
  /** How long to look at keepalives afterwards; 0: not at all. */
  readonly idleMs: number;
}

export interface RegisterAnswer {
  readonly ms: number;
  /** While idle. */
  readonly keepalives: number;
  readonly idleBytesWritten: number;
  readonly idleBytesRead: number;
  readonly idleCpuMs: number;
  readonly heapBytes: number;
  readonly cpuMs: number;
}

/** A directory that is there already. Needs no fleet. */
export interface SizeOrder {
  readonly op: 'size';
  readonly kind: 'ours-once' | 'ours-direct' | 'ours-mirror' | 'etcd3';
  readonly endpoint: string;
  readonly namespace: string;
  readonly children: number;
  /** How many single changes to follow. */
  readonly changes: number;
}

export interface SizeAnswer {
  /** Until the first listing was there. */
  readonly firstMs: number;
  /** Until all its names were built. */
  readonly namesMs: number;
  readonly names: number;
  readonly heapBytes: number;
  /** For the first listing. */
  readonly firstBytesRead: number;
  readonly changeMs: readonly number[];
  /** Of all changes together. */
  readonly changeBytesRead: number;
  readonly changeCpuMs: number;
}

/** Directories of one child each that are there already, all watched by this process. Needs no fleet. */
export interface WatchesOrder {
  readonly op: 'watches';
  readonly kind: 'ours-direct' | 'ours-mirror' | 'etcd3';
  readonly endpoint: string;
  readonly namespace: string;
  /** How many are looked at, beside a first one. */
  readonly watches: number;
}

export interface WatchesAnswer {
  /** Until all first listings were there. */
  readonly ms: number;
  /** In all first listings together. */
  readonly names: number;
  readonly heapBytes: number;
  readonly bytesRead: number;
  readonly cpuMs: number;
}

export interface ProfileOrder {
  readonly op: 'profile';
  /** Where to write what was profiled since the last such order; undefined: begin. */
  readonly file?: string | undefined;
}

export interface CloseOrder {
  readonly op: 'close';
}

export type Order =
  | OpenOrder
  | StormOrder
  | ChangesOrder
  | IdleOrder
  | AwaitOrder
  | ProbeOrder
  | RegisterOrder
  | SizeOrder
  | WatchesOrder
  | ProfileOrder
  | CloseOrder;

export interface Answers {
  open: OpenAnswer;
  storm: StormAnswer;
  changes: ChangesAnswer;
  idle: IdleAnswer;
  await: AwaitAnswer;
  probe: object;
  register: RegisterAnswer;
  size: SizeAnswer;
  watches: WatchesAnswer;
  profile: object;
  close: object;
}
