import type { KeyValue } from '../core/store.ts';
import { parseSize } from './chooser.ts';
import type { Blocked, Change, Nomination, Step, Volunteer, Wanted } from './model.ts';

/** The cluster's own keys, under its namespace. */
export const KEYS = {
  volunteer: '/volunteer/',
  endpoints: '/endpoints/',
  converged: '/converged/',
  nominated: '/nominated/',
  leaving: '/leaving/',
  controller: '/controller/',
  change: '/change',
  plan: '/plan',
  idealSize: '/chooser/dynamicsize/idealclustersize',
} as const;

/** What the controller publishes of its plan, for status and for all to know whether anything is left to do. */
export interface PublishedPlan {
  readonly controller: string;
  readonly generation: number;
  readonly idealSize: number;
  readonly wanted: Wanted;
  readonly steps: readonly Step[];
  readonly blocked: readonly Blocked[];
  readonly converged: boolean;
  /** Why the last step failed, if it did. */
  readonly trouble?: string | undefined;
}

/** All that lies under the namespace, read. What does not read is left out: anyone may write there. */
export interface ElasticKeys {
  readonly volunteers: readonly Volunteer[];
  readonly nominations: readonly Nomination[];
  readonly leaving: readonly string[];
  /** Client URLs by host, of members that answer linearizable reads. */
  readonly endpoints: ReadonlyMap<string, readonly string[]>;
  /** By host: the generation of the plan that it saw nothing left to do of. */
  readonly converged: ReadonlyMap<string, number>;
  /** The lease of each host's agent, by host. */
  readonly leases: ReadonlyMap<string, string>;
  readonly change: Change | undefined;
  readonly changeRevision: number;
  readonly plan: PublishedPlan | undefined;
  /** `undefined` when nothing valid is stored. */
  readonly idealSize: number | undefined;
  /** What is stored instead of a size. */
  readonly invalidSize: string | undefined;
}

export function decodeKeys(namespace: string, kvs: readonly KeyValue[]): ElasticKeys {
  const below = (part: string) => {
    const prefix = namespace + part;
    return kvs.flatMap((kv) => (kv.key.startsWith(prefix) ? [{ name: kv.key.slice(prefix.length), kv }] : []));
  };
  const at = (part: string) => kvs.find((kv) => kv.key === namespace + part);
  const change = at(KEYS.change);
  const size = textOf(at(KEYS.idealSize));
  return {
    volunteers: below(KEYS.volunteer).flatMap(({ name, kv }) => toVolunteer(name, kv) ?? []),
    nominations: below(KEYS.nominated).flatMap(
      ({ kv }) => parse<Nomination>(kv, ['host', 'memberId', 'initialCluster']) ?? [],
    ),
    leaving: below(KEYS.leaving).map(({ name }) => name),
    endpoints: new Map(
      below(KEYS.endpoints).map(({ name, kv }) => [name, (textOf(kv) ?? '').split(',').filter(Boolean)]),
    ),
    leases: new Map(below(KEYS.volunteer).map(({ name, kv }) => [name, kv.lease])),
    converged: new Map(below(KEYS.converged).map(({ name, kv }) => [name, Number(textOf(kv))])),
    change: parse<Change>(change, ['generation', 'kind', 'phase', 'host', 'peerUrls']),
    changeRevision: change?.modRevision ?? 0,
    plan: parse<PublishedPlan>(at(KEYS.plan), ['generation', 'wanted', 'blocked']),
    idealSize: size === undefined ? undefined : parseSize(size),
    invalidSize: size !== undefined && parseSize(size) === undefined ? size : undefined,
  };
}

/** What a volunteer says of itself; the rest is the store's. */
export type VolunteerValue = Omit<Volunteer, 'host' | 'since'>;

function toVolunteer(host: string, kv: KeyValue): Volunteer | undefined {
  const value = parse<VolunteerValue>(kv, ['incarnation', 'peerUrls', 'clientUrls', 'proven', 'etcdVersion']);
  return value && { ...value, host, since: kv.createRevision };
}

function parse<T>(kv: KeyValue | undefined, fields: readonly (keyof T)[]): T | undefined {
  const text = textOf(kv);
  if (text === undefined) return undefined;
  try {
    const value = JSON.parse(text) as T;
    return typeof value === 'object' && value !== null && fields.every((field) => value[field] !== undefined)
      ? value
      : undefined;
  } catch {
    return undefined;
  }
}

function textOf(kv: KeyValue | undefined): string | undefined {
  return kv && Buffer.from(kv.value).toString();
}
