/** What is known of the demo at a moment: all that a display shows. */
import type { Heartbeat } from '../index.ts';
import type { Traffic } from './tasks.ts';

/** `killed`: by SIGKILL. `draining`: it has been told to leave. `down`: it has left. */
export type ProcessState = 'starting' | 'up' | 'killed' | 'draining' | 'down';

export interface ServiceFacts {
  readonly name: string;
  readonly pid: number;
  readonly heartbeat: Heartbeat;
  readonly process: ProcessState;
  /** Whether the gateway's list shows it. */
  readonly isListed: boolean;
  readonly isMaster: boolean;
  readonly traffic: Traffic;
  /** Messages that this process received for its list, and as master. */
  readonly heard: number;
}

/** Messages received by all listeners of one kind together. */
export interface Heard {
  readonly listeners: number;
  readonly total: number;
  readonly perSecond: number;
}

export interface Step {
  readonly number: number;
  readonly of: number;
  readonly title: string;
  readonly text: string;
}

export type Tone = 'plain' | 'good' | 'bad' | 'notice';

export interface Note {
  readonly atMs: number;
  readonly text: string;
  readonly tone: Tone;
}

export interface Facts {
  /** Since the demo was started. */
  readonly elapsedMs: number;
  /** In words, such as `etcd 3.5.16`. */
  readonly etcd: string;
  readonly step: Step | undefined;
  readonly services: readonly ServiceFacts[];
  readonly listed: readonly string[];
  readonly isStale: boolean;
  readonly served: number;
  readonly failed: number;
  readonly master: string | undefined;
  /** Refreshes alone. */
  readonly atMaster: Heard;
  readonly atMirrored: Heard;
  readonly atDirect: Heard;
  readonly notes: readonly Note[];
}
