import { CALL_LIMIT_MS, FRESH_MS } from '../../../../src/elastic/limits.ts';
import type { Change } from '../../../../src/elastic/model.ts';
import type { ModelMember } from './etcd.ts';
import type { World } from './world.ts';

/** Nobody can know of a death later than the newest answer a plan may rest on, nor stop a call that is on its way. */
const UNKNOWABLE_MS = FRESH_MS + CALL_LIMIT_MS + 200;

/** Knows nothing of plans: it looks at each change that etcd makes, and says what must never have happened. */
export class Oracle {
  readonly violations: string[] = [];
  changes = 0;
  /** A change met a death that nobody could know of yet, and the quorum went with it. No plan can prevent that; etcd's own check may. */
  unlucky = false;

  constructor(readonly world: World) {}

  onChange(kind: 'add' | 'promote' | 'remove', member: ModelMember, before: readonly ModelMember[]): void {
    this.changes++;
    this.#expectRecord(kind, member);
    this.#expectQuorum(kind, member);
    if (kind === 'add' && !member.isLearner) this.#fail(`${member.id} was added as a voter`);
    if (kind === 'remove' && this.world.etcd.voters().length === 0) this.#fail('the last voter was removed');
    const { etcd, nowMs } = this.world;
    const led = member.id === etcd.leader && nowMs - etcd.leaderSinceMs > UNKNOWABLE_MS;
    if (kind === 'remove' && led && before.filter((one) => !one.isLearner).length > 1) {
      this.#fail(`the leader ${member.id} was removed before another led`);
    }
  }

  onRecord(before: Change | undefined, after: Change): void {
    const open = before && before.phase !== 'done' && before.phase !== 'failed';
    if (open && before.generation !== after.generation)
      this.#fail(`change ${after.generation} began before ${before.generation} ended`);
    if (!open && after.phase !== 'open') this.#fail(`change ${after.generation} begins as ${after.phase}`);
  }

  /** Each change of membership is the one on record at that moment: so there are never two. */
  #expectRecord(kind: 'add' | 'promote' | 'remove', member: ModelMember): void {
    const { change } = this.world;
    const open = change !== undefined && change.phase !== 'done' && change.phase !== 'failed';
    const fits =
      open &&
      ((kind === 'add' && change.kind === 'join' && change.peerUrls[0] === member.peerUrl) ||
        (kind === 'promote' && change.kind === 'promote' && change.memberId === member.id) ||
        (kind === 'remove' && change.kind === 'remove' && change.memberId === member.id) ||
        (kind === 'remove' && change.kind === 'join' && change.peerUrls[0] === member.peerUrl));
    if (!fits) this.#fail(`${kind} ${member.id} is not the change on record: ${describe(change)}`);
  }

  /** The voters of after must have a quorum of live ones, counting those of whose death nobody could know. */
  #expectQuorum(kind: 'add' | 'promote' | 'remove', member: ModelMember): void {
    const voters = this.world.etcd.voters();
    const live = voters.filter((voter) => voter.up || this.world.nowMs - voter.sinceMs <= UNKNOWABLE_MS);
    if (voters.filter((voter) => voter.up).length * 2 <= voters.length) this.unlucky = true;
    if (live.length * 2 <= voters.length)
      this.#fail(`${kind} ${member.id} leaves ${live.length} live of ${voters.length}`);
    if (kind === 'promote' && !live.includes(member)) this.#fail(`${member.id} was promoted dead`);
  }

  #fail(what: string): void {
    this.violations.push(`${(this.world.nowMs / 1_000).toFixed(2)} s: ${what}`);
  }
}

function describe(change: Change | undefined): string {
  return change
    ? `${change.generation} ${change.kind} ${change.host} ${change.memberId ?? ''} ${change.phase}`
    : 'none';
}
