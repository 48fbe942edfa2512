/** How a host begins. Pure. */

export interface StartFacts {
  readonly noServer: boolean;
  /** The data folder holds a member's log. */
  readonly hasLog: boolean;
  /** This host remembers a cluster. */
  readonly remembers: boolean;
  /** And to have been a member of it, which its data would have to show. */
  readonly wasMember: boolean;
  /** Anything to look for that cluster at: seeds, or endpoints remembered. */
  readonly hasEndpoints: boolean;
  readonly hasSeeds: boolean;
  readonly bootstrap: boolean;
  /** All URLs are of this machine. */
  readonly isLocal: boolean;
}

export type StartDecision =
  | { readonly start: 'restart' | 'connect' | 'bootstrap' | 'ask-then-bootstrap' }
  | { readonly start: 'refuse'; readonly why: string };

/** Data comes first, then memory, then what the options say: a host with data is what it was, and one that remembers never founds. */
export function decideStart(facts: StartFacts): StartDecision {
  if (facts.noServer) return { start: 'connect' };
  if (facts.hasLog) return { start: 'restart' };
  if (facts.remembers && facts.hasEndpoints) return { start: 'connect' };
  if (facts.remembers) {
    const what = facts.wasMember ? 'was a member of a cluster and has lost its data' : 'belongs to a cluster';
    const advice = 'give seeds to join it again, or restore a backup; to begin anew, remove its state folder';
    return { start: 'refuse', why: `this host ${what}, and knows nobody to ask: ${advice}` };
  }
  if (facts.hasSeeds) return { start: facts.bootstrap ? 'ask-then-bootstrap' : 'connect' };
  if (facts.bootstrap || facts.isLocal) return { start: 'bootstrap' };
  const why =
    'without data and without seeds this host would found a new cluster, on URLs that others reach: give seeds to join ' +
    'one, or bootstrap to found one';
  return { start: 'refuse', why };
}
