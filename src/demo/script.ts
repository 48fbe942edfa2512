/** The story that the demo tells, step by step. */
import type { Step } from './facts.ts';
import type { Counts, Stage } from './stage.ts';
import { REFRESH_PERIOD_MS, TTL } from './tasks.ts';

/** Services, and watchers of each kind, at first; then twice as many. */
export const FEW = 3;
export const MANY = 2 * FEW;
const COUNT_PERIODS = 6;
const LEAST_COUNT_PERIODS = 2;

export interface Crash {
  readonly name: string;
  /** From the SIGKILL until it was off the gateway's list. */
  readonly detectedMs: number;
  /** Requests to it that failed. */
  readonly failed: number;
  /** Requests sent to it once it was off the list. */
  readonly sentAfterwards: number;
  /** Of a mirror's master: who came next, and how long after the SIGKILL. */
  readonly successor?: { readonly name: string; readonly afterMs: number } | undefined;
}

export interface Outcome {
  readonly countedMs: number;
  readonly few: Counts;
  readonly many: Counts;
  readonly crashes: readonly Crash[];
  readonly failedInRestart: number;
  readonly failedInRoll: number;
  readonly served: number;
  readonly failed: number;
}

const TITLES = [
  'Services register, a gateway and watchers subscribe',
  'Who hears the heartbeats?',
  'Twice as many of everything',
  'A service crashes',
  'The mirror’s master crashes',
  'A restart in good order',
  'All services are rolled, one after the other',
] as const;

const names = (count: number) => Array.from({ length: count }, (_, index) => `web-${index + 1}`);
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

export class Script {
  readonly #stage: Stage;
  readonly #pace: number;
  readonly #onStep: (step: Step) => void;
  #steps = 0;

  /** `pace` scales the pauses that are there for the reader. */
  constructor(stage: Stage, pace: number, onStep: (step: Step) => void) {
    this.#stage = stage;
    this.#pace = pace;
    this.#onStep = onStep;
  }

  async play(): Promise<Outcome> {
    const stage = this.#stage;
    await this.#assemble();
    const few = await this.#whoHears();
    const many = await this.#twiceAsMany(few);
    const crashes = [await this.#crash(), await this.#crashMaster()];
    const failedInRestart = await this.#restart();
    const failedInRoll = await this.#roll();
    await stage.waiting.until(() => stage.agreed, 'all lists to show the same');
    const { served, failed } = stage.allTraffic;
    return { countedMs: this.#countedMs, few, many, crashes, failedInRestart, failedInRoll, served, failed };
  }

  async #assemble(): Promise<void> {
    const stage = this.#stage;
    this.#step(
      'Each service is a process with an HTTP server. It registers its address as an ephemeral node: listed exactly as long as the ' +
        'process lives. The gateway has no addresses of its own: it sends 40 requests a second to those on the live list. Watchers of ' +
        'two kinds follow the list too: through the mirror, and directly.',
    );
    await stage.startStore();
    await Promise.all(names(FEW).map((name) => stage.startService(name, 'put')));
    await stage.waiting.until(() => stage.master, 'a master of the mirror');
    await Promise.all([stage.startGateway(), stage.growWatchers(FEW)]);
    await stage.waiting.until(() => (stage.agreed?.length === FEW ? true : undefined), 'all lists to show the same');
    await this.#pause(3);
  }

  async #whoHears(): Promise<Counts> {
    this.#step(
      `Each service writes its key again every ${REFRESH_PERIOD_MS / 1_000} s, as those do that publish their load. A direct watcher ` +
        'hears every write: N services × N watchers = N² messages. Of the mirror’s users only one does, the elected master. It passes ' +
        'on changes of the list; there are none, so its watchers hear nothing.',
    );
    await this.#pause(2);
    const counts = await this.#count();
    this.#stage.note(
      `in ${seconds(this.#countedMs)}: master ${counts.master}, ${FEW} mirrored watchers ${counts.mirrored}, ` +
        `${FEW} direct watchers ${counts.direct}`,
      'notice',
    );
    await this.#pause(3);
    return counts;
  }

  async #twiceAsMany(few: Counts): Promise<Counts> {
    const stage = this.#stage;
    this.#step(
      'Three more services, and three more watchers of each kind. Twice the services are twice the messages at the master, but four ' +
        'times the messages at the direct watchers: that is N². The mirrored watchers hear of the newcomers, and then nothing again.',
    );
    const newcomers = names(MANY).slice(FEW);
    await Promise.all([stage.growWatchers(MANY), ...newcomers.map((name) => stage.startService(name, 'put'))]);
    await stage.waiting.until(() => (stage.agreed?.length === MANY ? true : undefined), 'all lists to show the same');
    await this.#pause(1);
    const many = await this.#count();
    const compared = (['master', 'mirrored', 'direct'] as const).map(
      (kind) =>
        `${kind} ${few[kind]} → ${many[kind]}${few[kind] > 0 ? ` (× ${(many[kind] / few[kind]).toFixed(1)})` : ''}`,
    );
    stage.note(`in ${seconds(this.#countedMs)}: ${compared.join(', ')}`, 'notice');
    await this.#pause(3);
    return many;
  }

  async #crash(): Promise<Crash> {
    const stage = this.#stage;
    const victim = names(MANY).find((name) => name !== stage.master) ?? '';
    this.#step(
      `SIGKILL for ${victim}: it cannot say goodbye. Its lease is not renewed any more, and after ${TTL} s (the ttl) etcd deletes the ` +
        'key. Until then the gateway cannot know, and its requests to it fail. From the moment the list has lost it, no request goes ' +
        'there: FAILED stands still.',
    );
    return this.#kill(victim);
  }

  async #crashMaster(): Promise<Crash> {
    const stage = this.#stage;
    const victim = await stage.waiting.until(() => stage.master, 'a master of the mirror');
    this.#step(
      `SIGKILL for ${victim}, which is also the mirror’s master. Its mastership hangs on the same lease as its registration, so both end ` +
        'together. The next in line takes over, goes on where the dead one stopped, and tells the watchers what they missed: that ' +
        `${victim} is gone.`,
    );
    return this.#kill(victim);
  }

  async #restart(): Promise<number> {
    const stage = this.#stage;
    const name = names(MANY).findLast((other) => other !== stage.master) ?? '';
    this.#step(
      `SIGTERM for ${name}, as a deployment does it. It takes itself off the list first, which every watcher hears at once, serves what ` +
        'is under way, and ends; then its successor registers under the same name. No request fails.',
    );
    const failedBefore = stage.allTraffic.failed;
    await this.#pause(1);
    await stage.leave(name);
    await this.#pause(1);
    await stage.startService(name, 'put');
    await this.#pause(1.5);
    return stage.allTraffic.failed - failedBefore;
  }

  async #roll(): Promise<number> {
    const stage = this.#stage;
    this.#step(
      'The same for each in turn, the master included: one that leaves in good order hands over at once. Each comes back with heartbeat ' +
        '‘lease’, the default, which renews the lease and writes no key: see how the messages fade, at the direct watchers too. No ' +
        'request fails.',
    );
    const failedBefore = stage.allTraffic.failed;
    for (const name of names(MANY)) {
      await stage.leave(name);
      await stage.startService(name, 'lease');
      await this.#pause(0.5);
    }
    await this.#pause(3.5);
    return stage.allTraffic.failed - failedBefore;
  }

  /** SIGKILL, what follows from it, and a new process under the name. */
  async #kill(victim: string): Promise<Crash> {
    const stage = this.#stage;
    await this.#pause(2);
    const wasMaster = stage.master === victim;
    const failedBefore = stage.traffic(victim).failed;
    const startMs = stage.elapsedMs;
    stage.note(`SIGKILL for ${victim} (pid ${stage.pid(victim)})`, 'bad');
    await stage.crash(victim);
    const atDetection = stage.waiting.until(
      () => (stage.isListed(victim) ? undefined : { ms: stage.elapsedMs - startMs, sent: stage.traffic(victim).sent }),
      `${victim} to be off the list`,
    );
    const successor = wasMaster ? this.#successor(startMs) : undefined;
    // Awaited further down: until then nobody else hears of it when the demo is ended.
    successor?.catch(() => {});
    const { ms: detectedMs, sent } = await atDetection;
    await stage.waiting.until(() => (stage.agreed ? true : undefined), 'all lists to show the same');
    await this.#pause(3);
    const crash: Crash = {
      name: victim,
      detectedMs,
      failed: stage.traffic(victim).failed - failedBefore,
      sentAfterwards: stage.traffic(victim).sent - sent,
      successor: await successor,
    };
    stage.note(
      `${victim}: off the list after ${seconds(detectedMs)}; ${crash.failed} failed until then, ` +
        `${crash.sentAfterwards} sent to it since`,
      'notice',
    );
    stage.note(`starting ${victim} again, as a supervisor would`);
    await stage.startService(victim, 'put');
    await this.#pause(1);
    return crash;
  }

  #successor(startMs: number): Promise<{ name: string; afterMs: number }> {
    const stage = this.#stage;
    return stage.waiting.until(
      () => (stage.master === undefined ? undefined : { name: stage.master, afterMs: stage.elapsedMs - startMs }),
      'the next master of the mirror',
    );
  }

  get #countedMs(): number {
    return Math.max(LEAST_COUNT_PERIODS, COUNT_PERIODS * this.#pace) * REFRESH_PERIOD_MS;
  }

  async #count(): Promise<Counts> {
    this.#stage.note(`counting messages for ${seconds(this.#countedMs)}…`);
    return this.#stage.count(this.#countedMs);
  }

  #step(text: string): void {
    this.#steps += 1;
    const step = { number: this.#steps, of: TITLES.length, title: TITLES[this.#steps - 1] ?? '', text };
    this.#stage.enter(step);
    this.#onStep(step);
  }

  #pause(s: number): Promise<void> {
    return this.#stage.waiting.sleep(s * 1_000 * this.#pace);
  }
}
