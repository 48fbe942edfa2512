import { sleep } from '../core/clock.ts';
import { Election, type Lock } from '../core/election.ts';
import { debugLog, messageOf } from '../core/log.ts';
import type { ClusterAdmin } from '../etcd/cluster-admin.ts';
import { controllerStep, type StepResult } from './controller.ts';
import { EtcdControllerPort } from './controller-port.ts';
import type { Coordination } from './coordination.ts';
import type { Plan } from './model.ts';
import type { Observer, View } from './observer.ts';
import type { ElasticConfig } from './options.ts';
import { KEYS, type PublishedPlan } from './records.ts';
import { inFlight } from './view.ts';

const log = debugLog('controller');

/** A learner's start or a promotion under way is to be seen at once; what waits for a host or an operator, soon; a death, in time. */
const IN_FLIGHT_MS = 15;
/** Before a step that etcd has refused is tried again. */
const REFUSED_MS = 100;
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
    while (!reign.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      let pauseMs = IDLE_MS;
      try {
        const result = await controllerStep(port, this.#config.policy, plan);
        plan = result.plan;
        this.#report(result);
        pauseMs = pauseAfter(result, port.view);
        // Between two steps that follow each other at once nobody could read it.
        const isPassing = pauseMs === 0 && result.plan.converged === this.#isConverged;
        if (!reign.aborted && !isPassing) await this.#publish(port, result);
        this.#lastBlindness = '';
      } catch (error) {
        this.#reportBlindness(messageOf(error));
      }
      if (pauseMs > 0) await this.#pause(pauseMs, reign, wake.signal);
    }
  }

  #report({ plan, error }: StepResult): void {
    const [step] = plan.steps;
    const trouble = error === undefined ? '' : messageOf(error);
    if (step && error === undefined) this.#config.logger.info(`${step.do}: ${step.why}`);
    if (trouble !== '' && trouble !== this.#lastTrouble)
      this.#config.logger.warn(`${step?.do ?? 'a step'} failed: ${trouble}`);
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

function pauseAfter({ plan, error }: StepResult, view: View | undefined): number {
  if (plan.steps.length > 0) return error === undefined ? 0 : REFUSED_MS;
  if (inFlight(view?.observed.change)) return IN_FLIGHT_MS;
  return plan.converged ? IDLE_MS : WAITING_MS;
}
