import { Election } from '../../core/election.ts';
import type { EphemeralError } from '../../core/errors.ts';
import type { Session } from '../../core/session.ts';
import type { MirrorKeys } from '../keys.ts';
import type { ReaderContext } from '../reader.ts';
import { MirrorAudit } from './audit.ts';
import type { Replica } from './marker.ts';
import { MirrorMaster } from './master.ts';

export interface CandidateContext extends ReaderContext {
  readonly mirror: MirrorKeys;
  readonly session: Session;
  readonly replica: () => Replica | undefined;
  /** This user may not be master: its lists go on without a place in line. */
  readonly onRefused: (error: EphemeralError) => void;
}

/** A process's place in line for the mastership of one mirror: master when elected, until then auditor of the one who is. */
export class Candidate {
  readonly #election: Election;
  readonly #audit: MirrorAudit;
  readonly #marker: string;
  #master: MirrorMaster | undefined;
  #settled: Promise<unknown> = Promise.resolve();

  constructor(context: CandidateContext) {
    const { connection, hub, session, mirror, onRefused } = context;
    this.#marker = mirror.marker;
    this.#audit = new MirrorAudit({
      ...context,
      ttlMs: () => session.ttlMs,
      isStoreWritable: () => session.isStoreWritable(),
      lock: () => (this.#election.isLeading ? undefined : this.#election.lock),
    });
    this.#election = new Election(connection, hub, session, mirror.locks, {
      onLeading: (lock) => {
        this.#audit.stop();
        this.#master = new MirrorMaster(context, lock, this.#settled);
      },
      onWaiting: () => this.#audit.restart(),
      onDeposed: () => this.#dismiss(),
      onRefused,
    });
  }

  async close(): Promise<void> {
    this.#dismiss();
    this.#audit.stop();
    // The mirror goes with the last who could keep it: nothing is left that would look alive.
    await this.#election.resign([{ type: 'delete', target: { prefix: this.#marker } }]);
  }

  #dismiss(): void {
    if (!this.#master) return;
    this.#master.stop();
    this.#settled = this.#master.settled;
    this.#master = undefined;
  }
}
