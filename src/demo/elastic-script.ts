/** The story that the elastic cluster's demo tells, step by step. */
import type { ElasticStage } from './elastic-stage.ts';
import type { Step } from './facts.ts';

const PAUSE_MS = 3_000;
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

const TITLES = [
  'One host founds a cluster, two more make it three',
  'Three become five',
  'A host dies, and another takes its place',
  'Back to one',
] as const;

export class ElasticScript {
  readonly #stage: ElasticStage;
  readonly #pace: number;
  readonly #onStep: (step: Step) => void;
  #steps = 0;

  /** `pace` scales the pauses that are there for the reader. */
  constructor(stage: ElasticStage, pace: number, onStep: (step: Step) => void) {
    this.#stage = stage;
    this.#pace = pace;
    this.#onStep = onStep;
  }

  /** Resolves to what has been seen, in lines. */
  async play(): Promise<string[]> {
    const stage = this.#stage;
    this.#enter(
      'Each host runs an agent. The first starts an etcd; the others volunteer, and the controller nominates them.',
    );
    await stage.start('h1');
    await Promise.all([stage.start('h2'), stage.start('h3')]);
    const toThree = await stage.settled(3);
    await this.#pause();

    this.#enter(
      'One key says how many voters there should be. Each joins as a learner, and becomes a voter once it has caught up.',
    );
    await Promise.all([stage.start('h4'), stage.start('h5')]);
    stage.resize(5);
    const toFive = await stage.settled(5);
    await this.#pause();

    this.#enter(
      'Its agent and its etcd are killed at once. When its lease is gone and it stays silent, the newcomer replaces it.',
    );
    const victim = stage.voters.findLast((name) => name !== stage.controller) ?? 'h5';
    await stage.crash(victim);
    await stage.start('h6');
    const healed = await stage.settled(5);
    await this.#pause();

    this.#enter(
      'One voter after the other is removed, the leader only after it has handed over. One host stays as a warm learner.',
    );
    stage.resize(1);
    const toOne = await stage.settled(1);
    const [last = ''] = stage.voters;
    await this.#pause();
    return [
      '',
      'What you saw',
      '',
      `  1 to 3 voters  ${seconds(toThree)}   (etcd wants each voter connected for 5 s before the next)`,
      `  3 to 5 voters  ${seconds(toFive)}`,
      `  ${victim} killed and replaced by h6, from the newcomer’s start  ${seconds(healed)}`,
      `  5 to 1 voter   ${seconds(toOne)}; ${last} is the one that stayed`,
      '',
    ];
  }

  #enter(text: string): void {
    const title = TITLES[this.#steps] ?? '';
    this.#steps += 1;
    const step = { number: this.#steps, of: TITLES.length, title, text };
    this.#stage.enter(step);
    this.#onStep(step);
  }

  #pause(): Promise<void> {
    return this.#stage.waiting.sleep(PAUSE_MS * this.#pace);
  }
}
