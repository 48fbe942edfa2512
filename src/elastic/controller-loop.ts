import { sleep } from '../core/clock.ts';
import { Election, type Lock } from '../core/election.ts';
import { debugLog, messageOf } from '../core/log.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import { afterNews } from './carry.ts';
import { controllerStep, type StepResult } from './controller.ts';
import { EtcdControllerPort } from './controller-port.ts';
import type { Coordination } from './coordination.ts';
import { toHex } from './ids.ts';
import { CONNECTED_MS } from './limits.ts';
import type { Observed, Plan, Step } from './model.ts';
import type { Observer, View } from './observer.ts';
import type { ElasticConfig } from './options.ts';
import { KEYS, type PublishedPlan } from './records.ts';
import { inFlight } from './view.ts';

const log = debugLog('controller');

/** A learner's start or a promotion under way is to be seen at once; what waits for a host or an operator, soon; a death, in time. */
const IN_FLIGHT_MS = 15;
/** Before a step that etcd has refused is tried again; and where it will take it at any moment. */
const REFUSED_MS = 100;
const ANY_MOMENT_MS = 10;
/** A connection may have stood for so much longer than its member has answered: it is made while that one still starts. */
const CONNECTED_BEFORE_MS = 500;
const WAITING_MS = 250;
const IDLE_MS = 500;

/** Takes part in the election, and acts while it leads. */
export class ControllerLoop {
  readonly #coordination: Coordination;
  readonly #admin: ClusterAdmin;
  readonly #observer: Observer;
  readonly #config: ElasticConfig;
  readonly #beforeChange: (view: View) => Promise<void>;
  readonly #election: Election;
  #reign: AbortController | undefined;
  #wake: AbortController | undefined;
  #published = '';
  #publishing: Promise<void> = Promise.resolve();
  #isConverged = false;
  #lastTrouble = '';
  #lastBlindness = '';
  readonly #offChanged: () => void;

  constructor(
    coordination: Coordination,
    admin: ClusterAdmin,
    observer: Observer,
    config: ElasticConfig,
    beforeChange: (view: View) => Promise<void>,
  ) {
    this.#coordination = coordination;
    this.#admin = admin;
    this.#observer = observer;
    this.#config = config;
    this.#beforeChange = beforeChange;
    const { connection, hub, session } = coordination.shared;
    this.#offChanged = coordination.changed.add(() => this.#wake?.abort());
    this.#election = new Election(connection, hub, session, config.namespace + KEYS.controller, {
      onLeading: (lock) => this.#begin(lock),
      onWaiting: () => {},
      onDeposed: () => this.#end(),
      onRefused: (error) => config.logger.error(`this host cannot take part in the election: ${error.message}`),
    });
  }

  get isController(): boolean {
    return this.#reign !== undefined;
  }

  async close(): Promise<void> {
    this.#offChanged();
    this.#end();
    await this.#election.resign();
  }

  #begin(lock: Lock): void {
    this.#end();
    const reign = new AbortController();
    this.#reign = reign;
    this.#published = '';
    this.#config.logger.info(`${this.#config.hostname} is the controller`);
    void this.#run(lock, reign.signal);
  }

  #end(): void {
    this.#reign?.abort();
    this.#reign = undefined;
  }

  async #run(lock: Lock, reign: AbortSignal): Promise<void> {
    const port = new EtcdControllerPort(this.#coordination.shared, this.#admin, this.#observer, lock, {
      namespace: this.#config.namespace,
      beforeChange: this.#beforeChange,
    });
    let plan: Plan | undefined;
    let known: Observed | undefined;
    let hasNews = false;
    while (!reign.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      let pauseMs = IDLE_MS;
      try {
        const { view } = port;
        const result = await controllerStep(port, this.#config.policy, plan, known);
        ({ plan, known } = result);
        // What was heard asks for no step by itself; what it was heard of, such as a member that votes now, may. A removal waits for
        // a host to take itself off the clients' list, which is heard of.
        const isRemoval = inFlight(known?.change)?.kind === 'remove';
        const needsLook = hasNews && port.view === view && plan.steps.length === 0 && !isRemoval;
        if (needsLook) known = undefined;
        pauseMs = needsLook ? 0 : pauseAfter(result, port.view);
        if (!needsLook) await this.#tell(port, result, pauseMs, reign);
        this.#lastBlindness = '';
      } catch (error) {
        known = undefined;
        this.#reportBlindness(messageOf(error));
      }
      if (pauseMs > 0) await this.#pause(pauseMs, reign, wake.signal);
      hasNews = pauseMs > 0 && wake.signal.aborted;
      const { keys, revision } = this.#coordination;
      if (pauseMs > 0) known = hasNews && known && keys ? afterNews(known, keys, revision) : undefined;
    }
  }

  async #tell(port: EtcdControllerPort, result: StepResult, pauseMs: number, reign: AbortSignal): Promise<void> {
    this.#report(result);
    if (reign.aborted || this.#isPassing(result, pauseMs)) return;
    this.#publishing = this.#publishing.then(() => this.#publish(port, result));
    // What says that all is done must stand before the next change begins; for anything else no step need wait.
    if (result.plan.converged) await this.#publishing;
  }

  /** Between two steps, or in the moment that a member takes to answer, nobody could read it, and all hosts would hear of it. */
  #isPassing({ plan, error }: StepResult, pauseMs: number): boolean {
    if (plan.converged !== this.#isConverged || error !== undefined) return false;
    if (pauseMs === 0) return true;
    const sinceMs = plan.memory.change?.phaseSinceMs ?? Number.NEGATIVE_INFINITY;
    return pauseMs === IN_FLIGHT_MS && this.#coordination.shared.connection.clock.now() - sinceMs < WAITING_MS;
  }

  #report({ plan, error }: StepResult): void {
    const [step] = plan.steps;
    const trouble = error === undefined ? '' : messageOf(error);
    if (step && error === undefined) this.#config.logger.info(`${nameOf(step)}: ${step.why}`);
    if (trouble !== '' && trouble !== this.#lastTrouble)
      this.#config.logger.warn(`${step ? nameOf(step) : 'a step'} failed: ${trouble}`);
    this.#lastTrouble = trouble;
  }

  /** Each reason once, until it can see again. */
  #reportBlindness(reason: string): void {
    log('no look at the cluster: %s', reason);
    if (reason !== this.#lastBlindness) this.#config.logger.warn(`no look at the cluster: ${reason}`);
    this.#lastBlindness = reason;
  }

  async #publish(port: EtcdControllerPort, { plan, error }: StepResult): Promise<void> {
    const { generation, wanted, steps, blocked, converged } = plan;
    const idealSize = port.view?.observed.idealSize ?? 0;
    const trouble = error === undefined ? undefined : messageOf(error);
    const published: PublishedPlan = {
      controller: this.#config.hostname,
      generation,
      idealSize,
      wanted,
      steps,
      blocked,
      converged,
      trouble,
    };
    const text = JSON.stringify(published);
    if (text === this.#published) return;
    try {
      await port.publish(published);
      this.#published = text;
      this.#isConverged = converged;
    } catch (failure) {
      log('the plan was not published: %s', messageOf(failure));
    }
  }

  async #pause(ms: number, reign: AbortSignal, wake: AbortSignal): Promise<void> {
    const either = new AbortController();
    const onAbort = () => either.abort();
    reign.addEventListener('abort', onAbort, { once: true });
    wake.addEventListener('abort', onAbort, { once: true });
    try {
      if (!reign.aborted && !wake.aborted) await sleep(this.#coordination.shared.connection.clock, ms, either.signal);
    } catch {
      // Woken.
    } finally {
      reign.removeEventListener('abort', onAbort);
    }
  }
}

function nameOf(step: Step): string {
  if (step.do === 'record') return `record: ${step.change.kind} ${step.change.host}`;
  return `${step.do} ${step.do === 'moveLeader' ? `to ${toHex(step.to)}` : step.host}`;
}

function pauseAfter({ plan, error }: StepResult, view: View | undefined): number {
  if (plan.steps.length > 0 && error === undefined) return 0;
  if (plan.steps.length > 0) return isAlmostConnected(plan, view) ? ANY_MOMENT_MS : REFUSED_MS;
  if (inFlight(view?.observed.change)) return IN_FLIGHT_MS;
  return plan.converged ? IDLE_MS : WAITING_MS;
}

/** Whether the voter that etcd most likely waits for will soon have been connected for as long as it asks. */
function isAlmostConnected({ memory }: Plan, view: View | undefined): boolean {
  if (!view) return false;
  const { nowMs, members } = view.observed;
  const voters = members.filter((member) => !member.isLearner);
  const youngestMs = Math.max(...voters.map(({ id }) => memory.answeringSinceMs.get(id) ?? nowMs));
  const connectedMs = nowMs - youngestMs + CONNECTED_BEFORE_MS;
  return connectedMs >= CONNECTED_MS && connectedMs <= CONNECTED_MS + 2 * CONNECTED_BEFORE_MS;
}
