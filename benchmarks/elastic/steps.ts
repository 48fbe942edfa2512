/** The steps that are timed, by hand and by the elastic cluster, and what they are called in the results. */
export const BY_HAND = 'etcd, by hand';
export const OURS = 'elastic cluster';
/** What a change of ours takes beside: by hand nobody makes one. */
export const BACKUP = 'backup before a change';

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

/** Told of each step that was timed; `backups` of them were made on the way. */
export type Note = (step: Step, ms: number, backups?: number) => void;

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
