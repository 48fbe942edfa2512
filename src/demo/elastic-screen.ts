import type { Picture } from './display.ts';
import type { ElasticFacts, HostFacts } from './elastic-stage.ts';
import { cells, explanation, heading, notes, PROCESS, type Size } from './screen.ts';
import { type Style, toWidth } from './text.ts';

const MAX_WIDTH = 110;
const HOST_ROWS = 6;
const TABLE_HEAD = 'HOST  PROCESS   ROLE     MEMBER            ETCD';

/** The elastic cluster's demo, as a display shows it. */
export function elasticPicture(facts: () => ElasticFacts): Picture {
  return {
    elapsedMs: () => facts().elapsedMs,
    screen: (size, style) => elasticScreen(facts(), size, style),
    statusLine: () => statusLine(facts()),
  };
}

/** Pure. */
export function elasticScreen(facts: ElasticFacts, { columns, rows }: Size, style: Style): string[] {
  const width = Math.max(1, Math.min(columns, MAX_WIDTH) - 2);
  const table = facts.hosts.map((host) => hostRow(host, width, style));
  const padding = Array.from({ length: Math.max(0, HOST_ROWS - table.length) }, () => '');
  const etcd = `${votersOf(facts).length} voters`;
  const fixed = [
    ...heading({ elapsedMs: facts.elapsedMs, etcd }, width, style),
    ...explanation(facts, width, style),
    '',
    style.dim(toWidth(TABLE_HEAD, width)),
    ...table,
    ...padding,
    cells(width, [['NOW   ', style.dim], [doing(facts)]]),
    '',
  ];
  const lines = [...fixed, ...notes(facts.notes, width, rows - fixed.length, style)];
  return lines.slice(0, Math.max(1, rows)).map((line) => (line === '' ? '' : ` ${line}`));
}

function hostRow({ name, process, status }: HostFacts, width: number, style: Style): string {
  const { word, colour } = PROCESS[process];
  const seen = process === 'up' ? status : undefined;
  return cells(width, [
    [name.padEnd(6), style.bold],
    [word.padEnd(10), style[colour]],
    [(seen?.role ?? '-').padEnd(9), seen?.role === 'voter' ? style.green : style.yellow],
    [(seen?.memberId ?? '-').padEnd(18)],
    [seen?.serverPid === undefined ? '-' : `pid ${seen.serverPid}`],
    [seen?.isController ? '  decides' : '', style.cyan],
  ]);
}

function votersOf({ hosts }: ElasticFacts): string[] {
  return hosts.flatMap(({ name, process, status }) => (process === 'up' && status?.role === 'voter' ? [name] : []));
}

/** The controller knows best. */
function doing({ hosts }: ElasticFacts): string {
  const up = hosts.flatMap(({ process, status }) => (process === 'up' && status ? [status] : []));
  const status = up.find(({ isController }) => isController) ?? up[0];
  if (!status) return 'the first host is starting';
  const { change, blocked } = status;
  if (change && (change.phase === 'open' || change.phase === 'added'))
    return `${change.host}: ${change.kind}, because ${change.why}`;
  const [first] = blocked;
  if (first) return `${first.what}: ${first.why}`;
  return status.converged ? 'all is as wanted' : 'it is being looked at';
}

function statusLine(facts: ElasticFacts): string | undefined {
  const voters = votersOf(facts);
  return voters.length === 0 ? undefined : `voters: ${voters.join(' ')} | ${doing(facts)}`;
}
