/** What the cluster's plan is made of: what was seen, what is wanted, and the steps between. Plain data, no behaviour. */

/** A member's answer to a status call. */
export interface MemberStatus {
  /** How long ago it answered. */
  readonly ageMs: number;
  readonly clusterId: string;
  /** The member it takes for the leader; `'0'` when it knows none. */
  readonly leader: string;
  readonly version: string;
  readonly dbSizeBytes: number;
  readonly raftIndex: number;
  readonly raftAppliedIndex: number;
}

/** A member as etcd lists it, with its newest answer. */
export interface Member {
  readonly id: string;
  /** The host's name; empty until the member has started once. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
  readonly status?: MemberStatus | undefined;
}

/** A host that offers to run a member, for as long as its agent lives. */
export interface Volunteer {
  readonly host: string;
  /** Differs for each start of the agent. */
  readonly incarnation: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** Its etcd was found and is of a known version, its ports are free or its own, its data folder can be written. */
  readonly proven: boolean;
  /** Why it is not proven. */
  readonly problem?: string | undefined;
  readonly etcdVersion: string;
  /** The member whose data it holds. */
  readonly holds?: string | undefined;
  /** It came back while the cluster had no quorum, not long ago: others may be on their way as well. */
  readonly afterOutage?: boolean | undefined;
  /** When it volunteered, as a revision: the smaller, the longer it has been there. */
  readonly since: number;
}

/** The order to a host to run a certain member. */
export interface Nomination {
  readonly host: string;
  readonly incarnation: string;
  readonly memberId: string;
  readonly peerUrls: readonly string[];
  /** etcd's `--initial-cluster`. */
  readonly initialCluster: string;
}

export type ChangeKind = 'join' | 'promote' | 'remove';

/** Why it is made: `grow` and `shrink` follow the wanted size; the others answer to what befell a member. */
export type ChangeCause = 'grow' | 'shrink' | 'leave' | 'dead' | 'lost-data' | 'stray';

/**
 * `open`: recorded. `added`: a join whose learner etcd knows. `withdrawn`: a promotion that must not begin any more, though one that
 * has begun may still end. `done` and `failed`: nothing is in flight.
 */
export type ChangePhase = 'open' | 'added' | 'withdrawn' | 'done' | 'failed';

/** The one change of membership in flight, or the last one. */
export interface Change {
  /** One more than the last change's. */
  readonly generation: number;
  readonly kind: ChangeKind;
  readonly cause: ChangeCause;
  readonly phase: ChangePhase;
  readonly host: string;
  /** Of the host's agent; empty for a removal, which needs no agent. */
  readonly incarnation: string;
  readonly peerUrls: readonly string[];
  readonly memberId?: string | undefined;
  readonly why: string;
  /** How it ended. */
  readonly outcome?: string | undefined;
}

/** One view of everything. */
export interface Observed {
  /** On a clock that only rises. */
  readonly nowMs: number;
  /** When everything was last looked at; absent where that is now. */
  readonly lookedAtMs?: number | undefined;
  /** The store's revision of the keys; absent where nobody watches them. */
  readonly keysRevision?: number | undefined;
  readonly clusterId: string;
  /** The leader named by whoever answered the linearizable read. */
  readonly leader: string;
  /** A linearizable read was answered within the last second. */
  readonly linearizable: boolean;
  readonly alarms: readonly string[];
  readonly members: readonly Member[];
  readonly volunteers: readonly Volunteer[];
  readonly nominations: readonly Nomination[];
  /** Hosts that were told to leave for good. */
  readonly leaving: readonly string[];
  /** Hosts that clients are told of. */
  readonly listed: readonly string[];
  readonly idealSize: number;
  readonly change?: Change | undefined;
  /** The store's revision of that record; 0 when there is none. */
  readonly changeRevision: number;
}

/** Which hosts are to be what. */
export interface Wanted {
  readonly voters: readonly string[];
  readonly learners: readonly string[];
}

/** What an operator may set. */
export interface Policy {
  readonly chooser: Chooser;
  /** A dead voter without a replacement is kept where fewer voters than this would be left. */
  readonly minVoters: number;
  /** How long a host may be silent before its member is replaced. */
  readonly deadAfterMs: number;
}

/** A member with what can be told of it. */
export interface MemberView {
  readonly id: string;
  readonly host: string;
  readonly peerUrls: readonly string[];
  readonly isLearner: boolean;
  /** It has run at least once. */
  readonly started: boolean;
  readonly leader: boolean;
  /** It answered within the last second, as part of this cluster and under its leader. */
  readonly answers: boolean;
  /** Its host's agent is there. */
  readonly agent: boolean;
  /** It is gone for good: silent, without an agent, for too long; or its host lost its data. */
  readonly dead: boolean;
  /** How long it may be silent before it counts as dead. */
  readonly patienceMs: number;
  readonly leaving: boolean;
  /** Entries it has yet to apply, against the leader; `undefined` while that is unknown. */
  readonly lag: number | undefined;
  /** How long it has answered without a pause. */
  readonly answeringForMs: number;
}

/** Given who could serve, says who should. Pure: the same input gives the same answer. */
export type Chooser = (
  policy: { readonly idealSize: number; readonly minVoters: number },
  volunteers: readonly Volunteer[],
  members: readonly MemberView[],
  previous: Wanted | undefined,
) => Wanted;

export type Step = { readonly why: string } & (
  | { readonly do: 'record'; readonly change: Change }
  | { readonly do: 'addLearner'; readonly host: string; readonly peerUrls: readonly string[] }
  | { readonly do: 'markAdded'; readonly host: string; readonly memberId: string }
  | { readonly do: 'withdraw'; readonly host: string }
  | { readonly do: 'moveLeader'; readonly to: string }
  | { readonly do: 'removeMember'; readonly host: string; readonly memberId: string }
  | { readonly do: 'finish'; readonly phase: 'done' | 'failed'; readonly host: string }
  | { readonly do: 'forget'; readonly host: string }
);

/** Something that keeps a wanted state from being reached, or that is waited for. */
export interface Blocked {
  readonly what: string;
  readonly why: string;
  /** What an operator can do; absent when waiting is enough. */
  readonly todo?: string | undefined;
}

/** What a plan remembers from one look to the next. */
export interface Memory {
  /** By member: since when it has been silent and without an agent. */
  readonly silentSinceMs: ReadonlyMap<string, number>;
  /** By member: since when it has answered every time. */
  readonly answeringSinceMs: ReadonlyMap<string, number>;
  /** Members that have answered at least once. */
  readonly seen: ReadonlySet<string>;
  /** By host: how often joining failed, and until when it is not tried again. */
  readonly failures: ReadonlyMap<string, { readonly count: number; readonly untilMs: number }>;
  /** The record as last seen, and since when it has been so without progress. */
  readonly change: SeenChange | undefined;
}

export interface SeenChange {
  readonly generation: number;
  readonly phase: ChangePhase;
  /** Since when the phase is this. */
  readonly phaseSinceMs: number;
  /** Differs whenever the change's member got on. */
  readonly progress: string;
  readonly progressSinceMs: number;
}

export interface Plan {
  /** Of the change that is in flight or would be next: a plan made for an older one is not carried out. */
  readonly generation: number;
  readonly wanted: Wanted;
  /** Only the first is carried out before everything is looked at again; the others are the outlook. */
  readonly steps: readonly Step[];
  readonly blocked: readonly Blocked[];
  /** What is wanted is there. */
  readonly converged: boolean;
  readonly memory: Memory;
}
