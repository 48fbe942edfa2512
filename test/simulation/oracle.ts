import type { KeyValue, WatchEvent } from '../../src/core/store.ts';
import type { Listing } from '../../src/ephemeral/api.ts';
import { mirrorKeys } from '../../src/ephemeral/keys.ts';
import type { Commit } from '../../src/memory/commit-log.ts';
import { type KeyTree, keysOf } from '../../src/memory/key-tree.ts';
import { AddedDirectories } from './added-directories.ts';
import { History, type TrueDirectory } from './history.ts';
import {
  type Process,
  parseValue,
  type RegistrationRecord,
  registeredValue,
  type SubscriptionRecord,
} from './records.ts';
import { type StoreKey, storeKey } from './store-keys.ts';

/** A promise of the library's that was broken; `rule` is its name in SPEC.md. */
export class Violation extends Error {
  constructor(
    readonly rule: string,
    message: string,
    readonly atMs: number,
  ) {
    super(`${rule}: ${message}`);
  }
}

export interface OracleWorld {
  readonly namespace: string;
  readonly ttlMs: number;
  readonly registrations: ReadonlyMap<number, RegistrationRecord>;
  nowMs(): number;
  /** Only outages that nobody may notice are in the program. */
  readonly isBrief: boolean;
  trace(text: () => string): void;
}

const decoder = new TextDecoder();

/** Sees every revision of the store and everything that users are told, and holds both against what is promised. */
export class Oracle {
  readonly history = new History();
  /** Whose lease it is. */
  readonly owners = new Map<string, Process>();
  readonly directories = new AddedDirectories();
  violation: Violation | undefined;
  /** Revisions made by processes, by what they wrote. */
  readonly writes = { marker: 0, shadow: 0, registration: 0 };
  readonly #world: OracleWorld;
  /** Until when each value was last in the store, on its owner's lease. */
  readonly #stoodUntilMs = new Map<string, number>();
  /** By history: registrations whose owner deleted their key on being asked to. */
  #deleted = new Set<number>();
  /** By history: of each registration the highest version that was ever stored. */
  #versions = new Map<number, number>();
  readonly #usurpedMs = new Map<string, number>();

  constructor(world: OracleWorld) {
    this.#world = world;
  }

  fail(rule: string, message: string): void {
    this.violation ??= new Violation(rule, message, this.#world.nowMs());
  }

  /** What the store holds now. */
  get keys(): KeyTree {
    return this.history.current.last.keys;
  }

  get revision(): number {
    return this.history.current.last.revision;
  }

  restored(begin: (history: History) => void): void {
    for (const kv of this.keys.values()) this.#stood(kv);
    begin(this.history);
    this.directories.restored();
    this.#versions = new Map();
    this.#deleted = new Set();
    for (const { events } of this.history.current.commits) for (const event of events) this.#noteVersion(event);
  }

  /** `by`: the process whose transaction it was; undefined for operators and expiry. */
  committed(commit: Commit, by: Process | undefined): void {
    const before = this.keys;
    for (const event of commit.events) this.#event(event, before, by);
    this.history.add(commit);
  }

  #event(event: WatchEvent, before: KeyTree, by: Process | undefined): void {
    const { namespace } = this.#world;
    const { kv, type } = event;
    const old = before.get(kv.key);
    const at = storeKey(namespace, kv.key);
    this.#world.trace(
      () =>
        `  ${kv.modRevision} ${by?.name ?? 'store'} ${type} ${JSON.stringify(kv.key)}` +
        (type === 'put' ? ` = ${decoder.decode(kv.value).slice(0, 160)}` : ''),
    );
    if (old && at.kind === 'registration') this.#stood(old);
    if (by) this.#written(event, old, at, before, by);
    if (at.kind === 'registration') this.#noteVersion(event);
    if (at.kind === 'directory') this.directories.committed(event, by);
  }

  #written(event: WatchEvent, old: KeyValue | undefined, at: StoreKey, before: KeyTree, by: Process): void {
    const { kv, type } = event;
    if (at.kind === 'registration') {
      this.writes.registration += 1;
      if (old && this.owners.get(old.lease) !== by) {
        this.fail('R3', `${by.name} ${type === 'put' ? 'overwrote' : 'deleted'} ${kv.key}, which another owner held`);
      }
      if (type === 'put') this.#putRegistration(kv, by);
      else if (old) this.#deletedRegistration(old, by);
    } else if (at.kind === 'marker' || at.kind === 'shadow') {
      this.writes[at.kind] += 1;
      const [lock] = this.#locks(at, before);
      if (!lock || this.owners.get(lock.lease) !== by) {
        const holder = lock ? (this.owners.get(lock.lease)?.name ?? 'someone unknown') : 'nobody';
        this.fail('M1', `${by.name} wrote ${kv.key} while ${holder} held the lock`);
      }
    } else if (at.kind === 'lock' && type === 'delete' && old && this.owners.get(old.lease) !== by) {
      this.#usurped(at, old, before, by);
    } else if (at.kind === 'directory' && type === 'delete') {
      const { names, added } = this.directory(at.path);
      if (names.size + added.size > 0) this.fail('API', `${by.name} removed directory ${at.path}, which was not empty`);
    } else if (at.kind === 'foreign' || (type === 'put' && at.kind === 'fence' && this.owners.get(kv.lease) !== by)) {
      this.fail('R3', `${by.name} wrote ${kv.key}, which is not its business`);
    }
  }

  #putRegistration(kv: KeyValue, by: Process): void {
    const value = decoder.decode(kv.value);
    if (this.owners.get(kv.lease) !== by) this.fail('R3', `${by.name} put ${kv.key} on lease ${kv.lease}, not its own`);
    const parsed = parseValue(value);
    const record = parsed && this.#world.registrations.get(parsed.id);
    if (!parsed || !record) {
      this.fail('R3', `${by.name} put ${kv.key} = ${value}, which nobody asked for`);
      return;
    }
    const newest = this.#versions.get(parsed.id) ?? 0;
    if (parsed.version < newest) this.fail('R3', `${kv.key} went back to ${value} after version ${newest} was stored`);
    if (this.#deleted.has(parsed.id) || record.phase === 'removed') {
      this.fail('R3', `${kv.key} = ${value} came back after it was removed`);
    }
    if (this.#world.isBrief && record.heartbeat === 'lease' && parsed.version === newest) {
      this.fail('R6', `${kv.key} = ${value} was put again though nothing but a short outage had happened`);
    }
  }

  #deletedRegistration(old: KeyValue, by: Process): void {
    const parsed = parseValue(decoder.decode(old.value));
    const record = parsed && this.#world.registrations.get(parsed.id);
    if (!parsed || !record) return;
    const isMeant = record.phase === 'removing' || record.phase === 'removed' || record.phase === 'refused';
    if (isMeant) this.#deleted.add(parsed.id);
    // The lease of a client that closes takes all its keys along.
    else if (by.state === 'open' && this.#world.isBrief)
      this.fail('R6', `${by.name} deleted ${old.key}, which lives on`);
  }

  #usurped(at: StoreKey, old: KeyValue, before: KeyTree, by: Process): void {
    if (!('mirror' in at)) return;
    const [first] = this.#locks(at, before);
    if (first?.key !== old.key) this.fail('M4', `${by.name} deleted ${old.key}, which was not the incumbent's lock`);
    const lastMs = this.#usurpedMs.get(at.mirror);
    const nowMs = this.#world.nowMs();
    this.#usurpedMs.set(at.mirror, nowMs);
    if (lastMs !== undefined && nowMs - lastMs < this.#world.ttlMs) {
      this.fail('M4', `${by.name} deposed the master of ${at.mirror} within a ttl of the last time`);
    }
  }

  /** In line for a mirror, the master first. */
  #locks(at: { readonly path: string; readonly values: boolean }, keys: KeyTree): KeyValue[] {
    const prefix = mirrorKeys(this.#world.namespace, at.path, at.values ? 'values' : 'names').locks;
    return keysOf(keys, { prefix }).sort((a, b) => a.createRevision - b.createRevision);
  }

  /** The processes in line for a mirror, its master first. */
  inLine(path: string, values: boolean): (Process | undefined)[] {
    return this.#locks({ path, values }, this.keys).map((lock) => this.owners.get(lock.lease));
  }

  #noteVersion({ type, kv }: WatchEvent): void {
    const parsed = type === 'put' ? parseValue(decoder.decode(kv.value)) : undefined;
    if (parsed) this.#versions.set(parsed.id, Math.max(parsed.version, this.#versions.get(parsed.id) ?? 0));
  }

  #stood(kv: KeyValue): void {
    this.#stoodUntilMs.set(decoder.decode(kv.value), this.#world.nowMs());
  }

  linked(process: Process, epoch: number): void {
    const lineage = process.servedLineage;
    const known = process.lineages.get(epoch);
    process.lineages.set(epoch, lineage);
    if (known !== undefined && known !== lineage) {
      this.fail('L6', `${process.name} did not notice that the store was restored`);
    }
  }

  /** Everything that users can see of registrations at this instant. */
  checkStates(): void {
    for (const record of this.#world.registrations.values()) {
      const { registration, process } = record;
      if (registration?.state !== 'registered' || !process.loop.isRunning || process.state !== 'open') continue;
      const sinceMs = this.#world.nowMs() - this.#world.ttlMs;
      const where = `${process.name} calls ${record.path} registered`;
      if (process.servedMs < sinceMs) this.fail('R1', `${where}, and has not heard from the store for a ttl`);
      const kv = this.keys.get(record.key);
      const stands = kv && decoder.decode(kv.value) === registration.value && this.owners.get(kv.lease) === process;
      if (stands || (this.#stoodUntilMs.get(registration.value) ?? Number.NEGATIVE_INFINITY) >= sinceMs) continue;
      this.fail(
        'R1',
        `${where} with ${registration.value}; for a ttl the store has had ${kv ? decoder.decode(kv.value) : 'nothing'}`,
      );
    }
  }

  listed(process: Process, path: string, listing: Listing, who: string): void {
    const { namespace } = this.#world;
    const lineage = this.history.lineages[process.lineages.get(listing.epoch) ?? -1];
    const truth = lineage?.directory(namespace, path, listing.revision);
    if (!lineage || !truth) {
      this.fail('L1', `${who} was told of revision ${listing.revision} in epoch ${listing.epoch}, which never was`);
      return;
    }
    const told = new Set(listing.children);
    const missing = [...truth.names].filter((name) => !told.has(name));
    const ghosts = [...told].filter((name) => !truth.names.has(name) && !lineage.wasEverAdded(namespace, path, name));
    const isEqual = missing.length + ghosts.length === 0 && told.size === listing.children.length;
    if (!isEqual) this.fail('L1', `${who} at revision ${listing.revision}: missing [${missing}], ghosts [${ghosts}]`);
    const wrong = listing.entries && differenceOfEntries(listing.entries, truth.entries);
    if (wrong) this.fail('L1', `${who} at revision ${listing.revision}: ${wrong}`);
  }

  heard(subscription: SubscriptionRecord, listing: Listing): void {
    const { process, path, last } = subscription;
    const who = `subscription ${subscription.id} of ${process.name} to ${path || '/'}`;
    if (process.loop.isDead) this.fail('S3', `${who} was told something after its death`);
    if (last && (listing.epoch < last.epoch || (listing.epoch === last.epoch && listing.revision < last.revision))) {
      this.fail('L1', `${who} went back from revision ${last.revision} to ${listing.revision}`);
    }
    this.listed(process, path, listing, who);
  }

  /** The directory as it is. */
  directory(path: string): TrueDirectory {
    return this.history.current.directory(this.#world.namespace, path, this.revision) as TrueDirectory;
  }

  /** When all is quiet: each registration that lives is in the store, and no other one is. */
  checkRegistrations(): void {
    for (const record of this.#world.registrations.values()) {
      const { registration, process, key, phase } = record;
      if (phase !== 'live' || process.state !== 'open' || !registration) continue;
      const kv = this.keys.get(key);
      const isForeign = kv !== undefined && this.owners.get(kv.lease) !== process;
      const newest = registeredValue(record, record.version);
      if (isForeign && registration.state === 'registered')
        this.fail('R1', `${process.name} calls ${key} registered, which it is not`);
      if (isForeign) continue;
      const stored = kv ? decoder.decode(kv.value) : 'nothing';
      if (stored !== newest) this.fail('R4', `${key} holds ${stored} instead of ${newest}`);
      if (registration.state !== 'registered')
        this.fail('R4', `${process.name} calls ${key} ${registration.state}, the store has ${stored}`);
    }
    this.checkGhosts();
    const missing = this.directories.missing(this.keys);
    if (missing !== undefined) this.fail('R4', `${missing} was added, nobody removed it, and it is not there`);
  }

  checkGhosts(): void {
    for (const kv of this.keys.values()) {
      const owner = this.owners.get(kv.lease);
      if (storeKey(this.#world.namespace, kv.key).kind !== 'registration' || !owner) continue;
      const parsed = parseValue(decoder.decode(kv.value));
      const record = parsed && this.#world.registrations.get(parsed.id);
      const lives = record && (record.phase === 'live' || record.phase === 'adding') && record.process.state === 'open';
      if (!lives) this.fail('R2', `${kv.key} = ${decoder.decode(kv.value)} is a ghost on a lease of ${owner.name}`);
    }
  }

  /** When all is quiet: a subscriber's last listing is the directory. */
  checkSubscription(subscription: SubscriptionRecord): void {
    const { process, path, last, state } = subscription;
    if (state !== 'open' || process.state !== 'open') return;
    const who = `subscription ${subscription.id} of ${process.name} to ${path || '/'}`;
    if (!last) {
      this.fail('L2', `${who} was never told anything`);
      return;
    }
    const { names, added, below } = this.directory(path);
    const children = new Set([...names, ...added]);
    const said = `${who}, at revision ${last.revision} of ${this.revision}`;
    if (!sameSet(children, new Set(last.children))) {
      this.fail('L2', `${said}, says [${last.children}], the directory is [${[...children].sort()}]`);
    }
    if (!sameSet(new Set([...below, ...added]), new Set(last.directories))) {
      this.fail('L2', `${said}, says directories are [${last.directories}], they are [${[...below, ...added]}]`);
    }
    if (last.status !== 'live') this.fail('L3', `${said}, is still stale`);
    const wrong = last.entries && differenceOfEntries(last.entries, this.directory(path).entries);
    if (wrong) this.fail('L2', `${said}: ${wrong}`);
  }
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((one) => b.has(one));
}

function differenceOfEntries(
  told: NonNullable<Listing['entries']>,
  truth: TrueDirectory['entries'],
): string | undefined {
  for (const name of new Set([...told.keys(), ...truth.keys()])) {
    const [a, b] = [told.get(name), truth.get(name)];
    if (a?.value === b?.value && a?.created === b?.created) continue;
    const show = (entry: typeof a) => (entry ? `${entry.value} (created ${entry.created})` : 'nothing');
    return `${name} is told as ${show(a)}, it was ${show(b)}`;
  }
  return undefined;
}
