import { hostname } from 'node:os';
import { ConnectionError } from '../../core/errors.ts';

/** When no member answers: what this host remembers of them, and what that leaves to be done. */
export async function withMemory(error: unknown, stateDir: string | undefined): Promise<unknown> {
  if (!(error instanceof ConnectionError)) return error;
  const [{ readState }, { toHex }, { defaultDataDir, defaultStateDir }] = await Promise.all([
    import('../../elastic/state-file.ts'),
    import('../../elastic/ids.ts'),
    import('../../elastic/options.ts'),
  ]);
  const state = readState(stateDir ?? defaultStateDir(defaultDataDir(hostname())));
  if (!state || state.members.length === 0) return error;
  const { host, clusterId, members, memberId } = state;
  const names = members.map(({ name, clientUrls }) => `${name} at ${clientUrls.join()}`).sort();
  const needed = Math.floor(members.length / 2) + 1;
  const last = memberId === undefined ? 'on one of their hosts' : `on this host (raft index ${state.raftIndex})`;
  return new ConnectionError(
    `${error.message}. ${host} remembers cluster ${toHex(clusterId)} with ${names.join(', ')}: it serves when ${needed} of ` +
      `${members.length} run; where that cannot be, ephemeral elastic recover ${last}`,
    { cause: error },
  );
}
