import type { ElasticConfig } from './options.ts';
import type { VolunteerValue } from './records.ts';
import type { StateFile } from './state-file.ts';

export interface OwnHost {
  readonly config: ElasticConfig;
  readonly incarnation: string;
  readonly etcdVersion: string;
  readonly state: StateFile;
}

/** What this host says of itself. */
export function volunteerValue(
  { config, incarnation, etcdVersion, state }: OwnHost,
  problem: string | undefined,
  afterOutage: boolean,
): string {
  const value: VolunteerValue = {
    incarnation,
    peerUrls: config.advertiseServerUrls,
    clientUrls: config.advertiseClientUrls,
    proven: problem === undefined,
    problem,
    etcdVersion,
    holds: state.current?.memberId,
    afterOutage,
  };
  return JSON.stringify(value);
}
