/** Whether the store serves, and who leads it: asked all the time, straight at the members. */
import type { EtcdProcess } from '../support/etcd-process.ts';
import { until } from '../support/wait.ts';

export interface Stretch {
  readonly fromMs: number;
  readonly untilMs: number;
}

const PERIOD_MS = 150;
const ANSWER_MS = 600;
/** Longer than this without an acknowledged write is trouble of the store's. */
const TROUBLE_MS = 700;

interface Status {
  readonly header: { readonly member_id: string };
  readonly leader?: string;
  readonly raftTerm?: string;
}

async function ask<T>(member: EtcdProcess, path: string, body: object): Promise<T> {
  const response = await fetch(`${member.endpoint}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  return (await response.json()) as T;
}

/** Raises or takes back the alarm of a full disk, which makes etcd refuse all puts. */
export async function setFull(member: EtcdProcess, on: boolean): Promise<void> {
  const action = on ? 'ACTIVATE' : 'DEACTIVATE';
  await until(
    async () => {
      const { header } = await ask<Status>(member, 'maintenance/status', {});
      await ask(member, 'maintenance/alarm', { action, memberID: header.member_id, alarm: 'NOSPACE' });
      return true;
    },
    `the alarm of a full store to be ${on ? 'raised' : 'taken back'}`,
  );
}

export class Pulse {
  /** When each change of leader was seen to be over. */
  readonly leaderChangesMs: number[] = [];
  /** Who led since when, for reports. */
  readonly leaders: { readonly at: string; readonly name: string; readonly term: number }[] = [];
  /** Stretches in which no write was acknowledged. */
  readonly troubles: Stretch[] = [];
  leader: EtcdProcess | undefined;
  readonly #members: readonly EtcdProcess[];
  readonly #ids = new Map<string, EtcdProcess>();
  #known = '';
  #lastWriteMs = Date.now();
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(members: readonly EtcdProcess[]) {
    this.#members = members;
  }

  start(): void {
    this.#running = Promise.all([this.#repeat(() => this.#look()), this.#repeat(() => this.#write())]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** When the store came back from its last trouble; now, while it has not. */
  get returnedMs(): number {
    return this.troublesUntil(Date.now()).at(-1)?.untilMs ?? 0;
  }

  /** The trouble that goes on now is one, too. */
  troublesUntil(nowMs: number): Stretch[] {
    const isOn = nowMs - this.#lastWriteMs > TROUBLE_MS;
    return isOn ? [...this.troubles, { fromMs: this.#lastWriteMs, untilMs: nowMs }] : this.troubles;
  }

  async #repeat(step: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await step().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
    }
  }

  async #look(): Promise<void> {
    const asked = await Promise.allSettled(
      this.#members.map(async (member) => {
        const status = await ask<Status>(member, 'maintenance/status', {});
        this.#ids.set(status.header.member_id, member);
        return status;
      }),
    );
    const answers = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const newest = answers.sort((a, b) => Number(b.raftTerm) - Number(a.raftTerm))[0];
    const votes = answers.filter(({ leader, raftTerm }) => leader === newest?.leader && raftTerm === newest?.raftTerm);
    if (!newest?.leader || newest.leader === '0' || votes.length < 2) return;
    const known = `${newest.leader} in term ${newest.raftTerm}`;
    if (known === this.#known) return;
    if (this.#known !== '') this.leaderChangesMs.push(Date.now());
    this.#known = known;
    this.leader = this.#ids.get(newest.leader);
    this.leaders.push({
      at: new Date().toISOString(),
      name: this.leader?.name ?? newest.leader,
      term: Number(newest.raftTerm),
    });
  }

  async #write(): Promise<void> {
    const put = { key: Buffer.from('/pulse').toString('base64'), value: '' };
    // Also what a full store refuses shows that it serves.
    await Promise.any(this.#members.map((member) => ask(member, 'kv/put', put)));
    const nowMs = Date.now();
    if (nowMs - this.#lastWriteMs > TROUBLE_MS) this.troubles.push({ fromMs: this.#lastWriteMs, untilMs: nowMs });
    this.#lastWriteMs = nowMs;
  }
}

/**
 * Until when a key may stand whose owner was last heard at `fromMs`: a ttl and a second; for each change of leader meanwhile a ttl
 * and the second by which etcd extends what it re-arms; and no sooner than the store serves again.
 */
export function ghostDeadlineMs(
  fromMs: number,
  ttlMs: number,
  leaderChangesMs: readonly number[],
  troubles: readonly Stretch[],
): number {
  let endMs = fromMs + ttlMs + 1_000;
  for (let before = 0; before !== endMs; ) {
    before = endMs;
    for (const changeMs of leaderChangesMs) {
      if (changeMs > fromMs - 2_000 && changeMs <= endMs) endMs = Math.max(endMs, changeMs + ttlMs + 2_000);
    }
    for (const trouble of troubles) {
      if (trouble.untilMs > fromMs && trouble.fromMs <= endMs) endMs = Math.max(endMs, trouble.untilMs + 1_000);
    }
  }
  return endMs;
}
