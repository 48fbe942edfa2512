import { checkPlan } from '../../../src/elastic/check-plan.ts';
import { dynamicSize } from '../../../src/elastic/chooser.ts';
import { initialCluster } from '../../../src/elastic/controller.ts';
import type { Change, Member, Nomination, Observed, Plan, Step, Volunteer } from '../../../src/elastic/model.ts';
import { plan as makePlan } from '../../../src/elastic/plan.ts';

interface Host {
  readonly name: string;
  member?: Member | undefined;
  holds?: string | undefined;
  agent: boolean;
  silent: boolean;
  proven: boolean;
  leaving: boolean;
  afterOutage?: boolean;
  version: string;
  lag: number;
}

const LOG_LENGTH = 1_000;

/** A cluster told line by line: what befalls it goes in, what the plan makes of it comes out. */
export class Story {
  readonly #hosts = new Map<string, Host>();
  readonly #nominations = new Map<string, Nomination>();
  readonly #listed = new Set<string>();
  #members: Member[] = [];
  #policy = { chooser: dynamicSize, minVoters: 3, deadAfterMs: 30_000 };
  #ideal = 5;
  #nowMs = 0;
  #leader = '0';
  #alarms: string[] = [];
  #linearizable = true;
  #change: Change | undefined;
  #revision = 0;
  #ids = 0;
  #plan: Plan | undefined;

  /** Runs one line. What it returns is what a story shows under it. */
  tell(line: string): string[] {
    const [verb = '', ...words] = line.split(/\s+/);
    const command = this.#commands[verb];
    if (!command) throw new Error(`no such line in a story: ${line}`);
    return command(words) ?? [];
  }

  readonly #commands: Record<string, (words: string[]) => string[] | undefined> = {
    ideal: ([size]) => {
      this.#ideal = Number(size);
      return undefined;
    },
    'min-voters': ([count]) => {
      this.#policy = { ...this.#policy, minVoters: Number(count) };
      return undefined;
    },
    alarm: (alarms) => {
      this.#alarms = alarms;
      return undefined;
    },
    quorum: ([state]) => {
      this.#linearizable = state !== 'lost';
      return undefined;
    },
    leader: ([name = '']) => {
      this.#leader = this.#memberOf(name).id;
      return undefined;
    },
    wait: ([seconds]) => this.#wait(Number(seconds)),
    voter: (names) => this.#each(names, (name) => this.#addMember(name, false)),
    client: (names) => this.#each(names, (name) => void this.#host(name)),
    dies: (names) => this.#set(names, { agent: false, silent: true }),
    silent: (names) => this.#set(names, { silent: true }),
    answers: (names) => this.#set(names, { silent: false }),
    returns: (names) => this.#set(names, { agent: true, silent: false }),
    'after-outage': (names) => this.#set(names, { afterOutage: true }),
    'agent-gone': (names) => this.#set(names, { agent: false }),
    wiped: (names) => this.#set(names, { agent: true, silent: true, holds: undefined }),
    unproven: (names) => this.#set(names, { proven: false }),
    proven: (names) => this.#set(names, { proven: true }),
    listed: (names) => this.#each(names, (name) => this.#listed.add(name)),
    unlisted: (names) => this.#each(names, (name) => this.#listed.delete(name)),
    leaves: (names) => this.#set(names, { leaving: true }),
    version: ([name = '', version = '']) => this.#set([name], { version }),
    lag: ([name = '', lag]) => this.#set([name], { lag: Number(lag) }),
    starts: (names) => this.#each(names, (name) => this.#start(name)),
    'promotes-itself': (names) => this.#each(names, (name) => this.#promote(name)),
    'new-controller': () => {
      this.#plan = undefined;
      return undefined;
    },
    plan: () => this.#show(this.#look()),
    do: () => this.#act(this.#look()),
    'add-and-crash': () => this.#addAndCrash(),
    run: () => this.#run(),
  };

  #host(name: string): Host {
    const known = this.#hosts.get(name);
    if (known) return known;
    const host = { name, agent: true, silent: false, proven: true, leaving: false, version: '3.4.23', lag: 0 };
    this.#hosts.set(name, host);
    return host;
  }

  #each(names: readonly string[], run: (name: string) => void): undefined {
    for (const name of names) run(name);
  }

  #set(names: readonly string[], what: Partial<Host>): undefined {
    this.#each(names, (name) => Object.assign(this.#host(name), what));
  }

  #memberOf(name: string): Member {
    const member = this.#members.find((one) => one.id === this.#host(name).holds);
    if (!member) throw new Error(`${name} is no member`);
    return member;
  }

  #addMember(name: string, isLearner: boolean, started = true): Member {
    const host = this.#host(name);
    const member = {
      id: `id${++this.#ids}`,
      name: started ? name : '',
      peerUrls: [urlOf(name)],
      clientUrls: [],
      isLearner,
    };
    if (started) host.holds = member.id;
    this.#members.push(member);
    if (this.#leader === '0') this.#leader = member.id;
    return member;
  }

  #replace(member: Member, what: Partial<Member>): void {
    this.#members = this.#members.map((one) => (one.id === member.id ? { ...one, ...what } : one));
  }

  #start(name: string): void {
    const order = this.#nominations.get(name);
    const member = this.#members.find((one) => one.id === order?.memberId);
    if (!member) throw new Error(`${name} is not nominated`);
    this.#host(name).holds = member.id;
    this.#replace(member, { name });
  }

  #promote(name: string): void {
    this.#replace(this.#memberOf(name), { isLearner: false });
  }

  #wait(seconds: number): undefined {
    this.#nowMs += seconds * 1_000;
    this.#look();
  }

  #look(): Plan {
    this.#plan = makePlan(this.#policy, this.#observe(), this.#plan);
    return this.#plan;
  }

  #observe(): Observed {
    const hosts = [...this.#hosts.values()];
    return {
      nowMs: this.#nowMs,
      clusterId: 'c',
      leader: this.#leader,
      linearizable: this.#linearizable,
      alarms: this.#alarms,
      members: this.#members.map((member) => this.#withStatus(member)),
      volunteers: hosts.flatMap((host, index) => (host.agent ? [volunteerOf(host, index)] : [])),
      nominations: [...this.#nominations.values()],
      leaving: hosts.filter((host) => host.leaving).map((host) => host.name),
      listed: [...this.#listed],
      idealSize: this.#ideal,
      change: this.#change,
      changeRevision: this.#revision,
    };
  }

  #withStatus(member: Member): Member {
    const host = this.#hosts.get(member.name);
    if (!host || host.silent || host.holds !== member.id) return member;
    const raft = { raftIndex: LOG_LENGTH - host.lag, raftAppliedIndex: LOG_LENGTH - host.lag };
    const status = { ageMs: 0, clusterId: 'c', leader: this.#leader, version: host.version, dbSizeBytes: 1, ...raft };
    return { ...member, status };
  }

  #show({ wanted, steps, blocked, converged }: Plan): string[] {
    return [
      `wanted: voters ${wanted.voters.join(' ') || 'none'}; learner ${wanted.learners.join(' ') || 'none'}`,
      ...blocked.flatMap(({ what, why, todo }) => [
        `${what}: ${why}`,
        ...(todo === undefined ? [] : [`  what to do: ${todo}`]),
      ]),
      ...steps.flatMap((step) => [`because ${step.why}:`, `  ${describe(step)}`]),
      ...(converged ? ['converged'] : []),
    ];
  }

  #act(plan: Plan): string[] {
    const shown = this.#show(plan);
    const faults = checkPlan(this.#policy, this.#observe(), plan);
    if (faults.length > 0) return [...shown, ...faults.map((fault) => `REFUSED: ${fault}`)];
    const [step] = plan.steps;
    if (step) this.#apply(step);
    return shown;
  }

  /** etcd adds the learner; the controller dies before it has said so. */
  #addAndCrash(): undefined {
    if (this.#change) this.#addMember(this.#change.host, true, false);
  }

  /** Everything that needs nobody else, step by step. */
  #run(): string[] {
    const lines: string[] = [];
    for (let turn = 0; turn < 40; turn++) {
      const plan = this.#look();
      if (plan.steps.length === 0) return [...lines, ...this.#show(plan)];
      lines.push(...this.#act({ ...plan, blocked: [] }).slice(1));
    }
    throw new Error('it does not come to rest');
  }

  #apply(step: Step): void {
    this.#revision++;
    if (step.do === 'record') this.#change = step.change;
    else if (step.do === 'moveLeader') this.#leader = step.to;
    else if (step.do === 'removeMember') this.#members = this.#members.filter((member) => member.id !== step.memberId);
    else if (step.do === 'forget') this.#forget(step.host);
    else if (this.#change) this.#carryOn(step, this.#change);
  }

  #carryOn(step: Step, change: Change): void {
    if (step.do === 'addLearner') this.#nominate(change, this.#addMember(change.host, true, false).id);
    else if (step.do === 'markAdded') this.#nominate(change, step.memberId);
    else if (step.do === 'withdraw') this.#change = { ...change, phase: 'withdrawn' };
    else if (step.do === 'finish') {
      this.#change = { ...change, phase: step.phase };
      if ((change.kind === 'remove') === (step.phase === 'done') && change.kind !== 'promote')
        this.#forget(change.host);
    }
  }

  #nominate(change: Change, memberId: string): void {
    const { host, incarnation, peerUrls } = change;
    const order = {
      host,
      incarnation,
      memberId,
      peerUrls,
      initialCluster: initialCluster({ memberId, members: this.#members }, host),
    };
    this.#change = { ...change, phase: 'added', memberId };
    this.#nominations.set(host, order);
  }

  #forget(name: string): void {
    this.#nominations.delete(name);
    const host = this.#hosts.get(name);
    if (!host) return;
    if (host.leaving) this.#hosts.delete(name);
    else host.holds = undefined;
  }
}

function volunteerOf(host: Host, since: number): Volunteer {
  const { name, proven, version: etcdVersion, holds, afterOutage } = host;
  return {
    host: name,
    incarnation: `${name}-1`,
    peerUrls: [urlOf(name)],
    clientUrls: [],
    proven,
    etcdVersion,
    holds,
    afterOutage,
    since,
  };
}

function urlOf(name: string): string {
  return `http://${name}:2380`;
}

function describe(step: Step): string {
  switch (step.do) {
    case 'record':
      return `record: ${step.change.kind} ${step.change.host} (${step.change.cause}), change ${step.change.generation}`;
    case 'addLearner':
      return `add ${step.host} as a learner at ${step.peerUrls.join(' ')}`;
    case 'markAdded':
      return `adopt ${step.memberId} for ${step.host}`;
    case 'moveLeader':
      return `move the leader to ${step.to}`;
    case 'removeMember':
      return `remove ${step.memberId} of ${step.host}`;
    case 'finish':
      return `${step.phase}: the change of ${step.host}`;
    case 'withdraw':
      return `withdraw the promotion of ${step.host}`;
    case 'forget':
      return `forget ${step.host}`;
  }
}
