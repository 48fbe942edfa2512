import type { Violation } from './oracle.ts';
import { describe, type Program } from './program.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

export interface Failure {
  readonly program: Program;
  readonly violation: Violation;
}

/** Leaves out what the failure does not need: halves first, then ever smaller parts, as long as the same promise is broken. */
export async function shrink(failure: Failure, options: SimulationOptions = {}): Promise<Failure> {
  let best = failure;
  const { rule } = failure.violation;
  const attempt = async (program: Program) => {
    const violation = await simulate(program, options);
    if (violation?.rule !== rule) return false;
    best = { program, violation };
    return true;
  };
  for (let size = Math.ceil(best.program.actions.length / 2); size >= 1; ) {
    let hasShrunk = false;
    for (let from = 0; from < best.program.actions.length; ) {
      const { actions } = best.program;
      const kept = [...actions.slice(0, from), ...actions.slice(from + size)];
      if (await attempt({ ...best.program, actions: kept })) hasShrunk = true;
      else from += size;
    }
    if (size === 1 && !hasShrunk) break;
    size = size === 1 ? 1 : Math.floor(size / 2);
  }
  for (const simpler of [{ delayMs: 0 }, { exam: 'none' }, { namespace: '' }] as const) {
    await attempt({ ...best.program, ...simpler });
  }
  return best;
}

/** The failure as a story: what was done, and which promise was broken. */
export function tell({ program, violation }: Failure): string {
  const { seed, ttl, namespace, delayMs, exam, actions } = program;
  return [
    `seed ${seed}: ttl ${ttl} s, namespace '${namespace}', delays up to ${delayMs} ms, at the end: ${exam}`,
    ...actions.map(describe),
    `${String(Math.round(violation.atMs)).padStart(6)} ms  broken: ${violation.message}`,
  ].join('\n');
}
