/** Which versions of etcd may serve, and side by side. */

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

export function parseVersion(text: string): Version | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(text.trim());
  if (!match) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3]) };
}

/** Why this etcd may not be used at all, or `undefined`. */
export function versionFault(text: string): string | undefined {
  const version = parseVersion(text);
  if (!version) return `its version "${text}" cannot be read`;
  const { major, minor, patch } = version;
  if (major !== 3 || minor < 4) return `etcd ${text} does not serve here: 3.4 or newer of 3.x is needed, for learners`;
  if (minor === 5 && patch < 2) return `etcd ${text} brings removed members back after a restart: use 3.5.2 or newer`;
  return undefined;
}

/** Why an etcd may not join members of these versions, or `undefined`. etcd goes up one minor version at a time, never down. */
export function joinFault(text: string, members: readonly string[]): string | undefined {
  const own = versionFault(text);
  if (own !== undefined) return own;
  const minor = parseVersion(text)?.minor ?? 0;
  const minors = members.flatMap((one) => parseVersion(one)?.minor ?? []);
  if (minors.length === 0) return undefined;
  const oldest = Math.min(...minors);
  if (minor < oldest) return `etcd ${text} is older than the cluster's 3.${oldest}`;
  if (minor > oldest + 1) return `etcd ${text} is more than one minor version ahead of the cluster's 3.${oldest}`;
  return undefined;
}
