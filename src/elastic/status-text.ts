import type { Blocked, Change, Step } from './model.ts';
import type { ClusterStatus, StatusRow } from './status.ts';

/** What an operator reads at night: how bad it is, what is being done, what to do; then the hosts. Pure. */
export function statusText(status: ClusterStatus): string {
  return [headline(status), ...standing(status), ...doing(status), '', ...table(status.rows), ''].join('\n');
}

/** What would be done now, and why. */
export function planText({
  wanted,
  steps,
  blocked,
  converged,
}: Pick<ClusterStatus, 'wanted' | 'steps' | 'blocked' | 'converged'>): string {
  const lines = [
    `wanted   ${wantedText(wanted.voters, 'voter')}${wanted.learners.length > 0 ? `; warm learner ${wanted.learners.join(', ')}` : ''}`,
    ...steps.map((step) => `next     ${describeStep(step)}, because ${step.why}`),
    ...blocked.flatMap(reason),
    ...(steps.length === 0 && blocked.length === 0
      ? [converged ? 'nothing to do' : 'nothing to do at this moment']
      : []),
  ];
  return `${lines.join('\n')}\n`;
}

function headline({ healthy, converged, quorum, alarms, clusterId }: ClusterStatus): string {
  const state = !quorum
    ? 'NO QUORUM: nothing can be written, and nothing is changed by itself'
    : alarms.length > 0
      ? `ALARM ${alarms.join(', ')}: everything is frozen`
      : !healthy
        ? 'DEGRADED: it serves, and something needs attention'
        : converged
          ? 'healthy, and as wanted'
          : 'healthy, and changing';
  return `cluster ${clusterId}: ${state}`;
}

function standing({ canStand, wanted, idealSize, controller }: ClusterStatus): string[] {
  const failures =
    canStand < 0
      ? `${-canStand} more must come back before anything can be written`
      : canStand === 0
        ? 'NO further failure can be stood'
        : `${canStand} further ${canStand === 1 ? 'failure' : 'failures'} can be stood`;
  const learners = wanted.learners.length > 0 ? `; warm learner ${wanted.learners.join(', ')}` : '';
  return [
    `stands   ${failures}`,
    `wanted   ${wantedText(wanted.voters, 'voter')}${learners} (ideal size ${idealSize})`,
    ...(controller === undefined ? [] : [`decides  ${controller}`]),
  ];
}

function doing({ change, steps, blocked, converged }: ClusterStatus): string[] {
  return [
    ...(change ? [`doing    ${describeChange(change)}, because ${change.why}`] : []),
    ...steps.map((step) => `next     ${describeStep(step)}, because ${step.why}`),
    ...blocked.flatMap(reason),
    ...(converged || change || steps.length > 0 || blocked.length > 0 ? [] : ['waits    for hosts to report']),
  ];
}

function reason({ what, why, todo }: Blocked): string[] {
  return [`note     ${what}: ${why}`, ...(todo === undefined ? [] : [`TO DO    ${todo}`])];
}

function wantedText(hosts: readonly string[], what: string): string {
  return hosts.length === 0
    ? 'unknown'
    : `${hosts.length} ${what}${hosts.length === 1 ? '' : 's'}: ${hosts.join(', ')}`;
}

function describeChange({ kind, host, phase }: Change): string {
  if (kind === 'join')
    return phase === 'added' ? `${host} is starting as a learner` : `${host} is to join as a learner`;
  if (kind === 'promote')
    return phase === 'withdrawn' ? `the promotion of ${host} is withdrawn` : `${host} is becoming a voter`;
  return `${host} is being removed`;
}

function describeStep(step: Step): string {
  switch (step.do) {
    case 'record':
      return step.change.kind === 'join'
        ? `add ${step.change.host} as a learner`
        : step.change.kind === 'promote'
          ? `let ${step.change.host} become a voter`
          : `remove ${step.change.host}`;
    case 'addLearner':
      return `add ${step.host} as a learner`;
    case 'markAdded':
      return `take ${step.host} up as a learner`;
    case 'moveLeader':
      return 'move the leader away';
    case 'removeMember':
      return `remove ${step.host}`;
    case 'withdraw':
      return `withdraw the promotion of ${step.host}`;
    case 'finish':
      return `close the change of ${step.host} as ${step.phase}`;
    case 'forget':
      return `forget ${step.host}`;
  }
}

const COLUMNS: readonly (readonly [string, (row: StatusRow) => string])[] = [
  ['HOST', ({ host }) => host],
  ['ROLE', ({ role, leader }) => (leader ? `${role}*` : role)],
  ['MEMBER', ({ memberId }) => memberId ?? '-'],
  ['ENDPOINT', ({ endpoint }) => endpoint ?? '-'],
  ['VERSION', ({ version }) => version ?? '-'],
  ['DB', ({ dbSizeBytes }) => (dbSizeBytes === undefined ? '-' : bytes(dbSizeBytes))],
  ['LAG', ({ raftLag }) => (raftLag === undefined ? '-' : String(raftLag))],
  ['LEASE', ({ leaseAgeS }) => (leaseAgeS === undefined ? 'gone' : `${leaseAgeS} s`)],
  ['', ({ problem }) => problem?.split('\n')[0] ?? ''],
];

function table(rows: readonly StatusRow[]): string[] {
  const cells = [COLUMNS.map(([title]) => title), ...rows.map((row) => COLUMNS.map(([, cell]) => cell(row)))];
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const lines = cells.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return rows.some(({ leader }) => leader) ? [...lines, '* leads'] : lines;
}

function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 ** 2) return `${Math.round(count / 1024)} KiB`;
  return count < 1024 ** 3 ? `${(count / 1024 ** 2).toFixed(1)} MiB` : `${(count / 1024 ** 3).toFixed(1)} GiB`;
}
