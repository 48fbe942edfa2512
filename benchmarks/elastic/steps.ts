/** The steps that are timed, by hand and by the elastic cluster, and what they are called in the results. */
export const BY_HAND = 'etcd, by hand';
export const OURS = 'elastic cluster';
/** The parts of a step that are no matter of how it is made: etcd's own elections; and backups, which nobody makes by hand. */
export const APART = 'apart: elections, backups';
export const NET = 'without what is apart';

export const STEPS = [
  'boot of the first',
  'restart of an only one',
  'a learner joins',
  '1 to 3',
  '1 to 5',
  '5 to 1',
  'dead one replaced',
  'dead one replaced by the spare',
  'etcd of a follower killed, restarted in place',
  'etcd of the leader killed, restarted in place',
  'write gap: leader leaves its place',
  'write gap: leader killed',
] as const;

export type Step = (typeof STEPS)[number];

/** Told of each step that was timed, and how much of that is counted apart. */
export type Note = (step: Step, ms: number, apartMs?: number) => void;

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
