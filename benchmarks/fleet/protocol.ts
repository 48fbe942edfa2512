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

export interface ChangesAnswer {
  /** From a change's time until every member has it. */
  readonly latenciesMs: readonly number[];
  readonly checksums: readonly string[];
}

export interface ProfileOrder {
  readonly op: 'profile';
  /** Where to write what was profiled since the last such order; undefined: begin. */
  readonly file?: string | undefined;
}

export interface CloseOrder {
  readonly op: 'close';
}

export type Order = OpenOrder | StormOrder | ChangesOrder | ProfileOrder | CloseOrder;

export interface Answers {
  open: OpenAnswer;
  storm: StormAnswer;
  changes: ChangesAnswer;
  profile: object;
  close: object;
}
