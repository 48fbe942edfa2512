import type { TestFn } from 'ava';
import {
  ClosedError,
  ConflictError,
  PathExistsError,
  type Registration,
  type RegistrationState,
  RevokedError,
  ValueTooLargeError,
} from '../../src/index.ts';
import { see } from '../support/listings.ts';
import { Space, type World } from '../support/space.ts';
import { until } from '../support/wait.ts';

const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

const untilState = (registration: Registration, state: RegistrationState) =>
  until(() => registration.state === state, `${registration.path} to be ${state}`);

function statesOf(registration: Registration): { readonly told: RegistrationState[]; readonly completed: boolean } {
  const seen = { told: [] as RegistrationState[], completed: false };
  registration.state$.subscribe({
    next: (state) => seen.told.push(state),
    complete: () => {
      seen.completed = true;
    },
  });
  return seen;
}

/** Registrations, from addKey to their end. */
export function registrationContract(test: TestFn, world: () => World): void {
  test('a key is registered with its value on the lease of its process', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const a = await client.addKey('/d/a', 'one');
    const b = await client.addKey('/d/b', 'two');
    t.deepEqual([a.path, a.value, a.state, a.error], ['/d/a', 'one', 'registered', undefined]);
    const [stored, other] = [await space.key('/d/a'), await space.key('/d/b')];
    t.is(text(stored?.value), 'one');
    t.not(stored?.lease, '0', 'no key is ever without a lease');
    t.is(stored?.lease, other?.lease, 'one lease for the process');
    t.is(b.state, 'registered');
  });

  test('state$ replays the state, tells each change, and completes after removed', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'v');
    const early = statesOf(registration);
    await registration.update('w');
    await registration.remove();
    t.deepEqual(early.told, ['registered', 'registering', 'registered', 'removed']);
    const late = statesOf(registration);
    t.deepEqual([late.told, late.completed, early.completed], [['removed'], true, true]);
  });

  test('a removed key is gone when remove resolves; removing it again does nothing', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'v');
    await registration.remove();
    t.is(await space.key('/k'), undefined);
    await space.put('/k', 'another');
    await registration.remove();
    t.is(text((await space.key('/k'))?.value), 'another');
    t.is(registration.state, 'removed');
  });

  test('await using removes the key at the end of its scope, and closes a client', async (t) => {
    const space = await Space.open(t, world());
    let client: Awaited<ReturnType<Space['connect']>>;
    {
      await using scoped = await space.connect();
      client = scoped;
      {
        await using registration = await scoped.addKey('/k', 'v');
        t.is(registration.state, 'registered');
      }
      t.is(await space.key('/k'), undefined);
      await scoped.addKey('/l', 'v');
    }
    t.is(client.state, 'closed');
    t.is(await space.key('/l'), undefined);
  });

  test('an update is stored when it resolves, and the newest of many wins', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', '0');
    await registration.update('1');
    t.is(text((await space.key('/k'))?.value), '1');
    const updates = Array.from({ length: 50 }, (_, i) => registration.update(String(i + 2)));
    t.is(registration.value, '51');
    await Promise.all(updates);
    t.is(text((await space.key('/k'))?.value), '51');
    t.is(registration.state, 'registered');
  });

  test('an update of a removed registration is a ClosedError that says what to do', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'v');
    await registration.remove();
    const error = await t.throwsAsync(registration.update('w'), { instanceOf: ClosedError, code: 'CLOSED' });
    t.regex(error?.message ?? '', /\/k .*addKey/);
    t.is(await space.key('/k'), undefined);
  });

  test('a path is registered once by a client at a time; after a removal it is free again', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const first = await client.addKey('/k', 'one');
    const error = await t.throwsAsync(client.addKey('/k', 'two'), { instanceOf: PathExistsError, code: 'PATH_EXISTS' });
    t.regex(error?.message ?? '', /\/k .*update/);
    await t.throwsAsync(client.withNamespace('').addKey('/k', 'two'), { instanceOf: PathExistsError });
    t.is(text((await space.key('/k'))?.value), 'one');
    void first.remove();
    const second = await client.addKey('/k', 'three');
    t.is(text((await space.key('/k'))?.value), 'three');
    t.is(second.state, 'registered');
  });

  test('a key without a lease is a PathExistsError at once, and stays as it is', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect({ ttl: 1_000 });
    await space.put('/k', 'permanent');
    const before = await space.dump();
    const error = await t.throwsAsync(client.addKey('/k', 'v'), { instanceOf: PathExistsError });
    t.regex(error?.message ?? '', /\/k .*no lease.*delete that key/);
    t.deepEqual(await space.dump(), before);
    await space.remove('/k');
    t.is((await client.addKey('/k', 'v')).state, 'registered', 'nothing of the failed one is left');
  });

  test('a key whose owner has died is taken over when its lease expires (R3)', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const directory = see(t, client.list('/', { watch: true, values: true, via: 'direct' }));
    await directory.untilNames('');
    await space.put('/k', 'dead', await space.grant(2));
    const registration = await client.addKey('/k', 'alive');
    t.is(registration.state, 'registered');
    t.is(text((await space.key('/k'))?.value), 'alive');
    await until(() => directory.last?.entries.get('k')?.value === 'alive', 'the new value');
    t.deepEqual(
      directory.listings.map(({ entries }) => entries.get('k')?.value),
      [undefined, 'dead', undefined, 'alive'],
      'the dead one went before the new one came',
    );
  });

  test('a key that a live owner holds is a PathExistsError after patience, and is never overwritten (R3)', async (t) => {
    const space = await Space.open(t, world());
    const [owner, other] = [await space.connect(), await space.connect()];
    const held = await owner.addKey('/k', 'mine');
    const before = await space.key('/k');
    const error = await t.throwsAsync(other.addKey('/k', 'yours'), { instanceOf: PathExistsError });
    t.regex(error?.message ?? '', /\/k .*another name/);
    t.deepEqual(await space.key('/k'), before);
    t.is(held.state, 'registered');
    await held.remove();
    t.is((await other.addKey('/k', 'yours')).state, 'registered');
  });

  test('with wait: false addKey resolves at once, and the key follows', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'v', { wait: false });
    t.is(registration.state, 'registering');
    await untilState(registration, 'registered');
    t.is(text((await space.key('/k'))?.value), 'v');
  });

  test('with wait: false a taken path is a ConflictError of the registration, which gets the key when it is free', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    await space.put('/k', 'permanent');
    const registration = await client.addKey('/k', 'v', { wait: false });
    await until(() => registration.error instanceof ConflictError, 'the conflict');
    t.is(registration.state, 'lost');
    t.true(registration.error?.retryable);
    t.is(text((await space.key('/k'))?.value), 'permanent');
    await space.remove('/k');
    await untilState(registration, 'registered');
    t.is(registration.error, undefined);
    t.is(text((await space.key('/k'))?.value), 'v');
  });

  test('the signal of addKey ends the call only; until ends the registration', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const [call, life] = [new AbortController(), new AbortController()];
    const registration = await client.addKey('/k', 'v', { signal: call.signal, until: life.signal });
    call.abort();
    await registration.update('w');
    t.is(registration.state, 'registered');
    life.abort();
    await until(async () => (await space.key('/k')) === undefined, 'the key to go');
    t.is(registration.state, 'removed');
    const reason = new Error('over');
    await t.throwsAsync(client.addKey('/k', 'v', { until: AbortSignal.abort(reason) }), { is: reason });
    t.is(await space.key('/k'), undefined);
  });

  test('until also ends a registration that is still waiting for its path', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const lease = await space.grant(60);
    await space.put('/k', 'other', lease);
    const life = new AbortController();
    const waiting = client.addKey('/k', 'v', { until: life.signal });
    const lost = await client.addKey('/l', 'v', { wait: false, until: life.signal });
    await untilState(lost, 'registered');
    life.abort();
    await t.throwsAsync(waiting, { instanceOf: ClosedError });
    await space.revoke(lease);
    await until(async () => (await space.key('/l')) === undefined, 'the key to go');
    t.is(await space.key('/k'), undefined);
  });

  test('close takes all keys away at once, also those still on their way', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect({ ttl: 1_000 });
    const kept = await Promise.all(Array.from({ length: 20 }, (_, i) => client.addKey(`/d/${i}`, '')));
    const onTheirWay = Array.from({ length: 20 }, (_, i) => client.addKey(`/e/${i}`, ''));
    const closing = client.close();
    for (const registration of onTheirWay) await t.throwsAsync(registration, { instanceOf: ClosedError });
    await closing;
    t.deepEqual(await space.keys(), [], 'the session itself leaves nothing either');
    t.true(kept.every(({ state }) => state === 'removed'));
    await client.close();
  });

  test('a lease heartbeat makes no event; a put heartbeat writes the same value again and again', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect({ heartbeat: 'put' });
    const put = await client.addKey('/k', 'v');
    const lease = await client.addKey('/l', 'v', { heartbeat: 'lease' });
    const before = await space.key('/l');
    await until(async () => ((await space.key('/k'))?.version ?? 0) >= 3, 'two refreshes');
    t.is(text((await space.key('/k'))?.value), 'v');
    await put.update('w');
    await until(async () => ((await space.key('/k'))?.version ?? 0) >= 5, 'a refresh');
    t.is(text((await space.key('/k'))?.value), 'w', 'with the current value');
    t.deepEqual(await space.key('/l'), before);
    t.is(lease.state, 'registered');
  });

  test('a key that somebody deletes is back (R4)', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'v');
    const states = statesOf(registration);
    await space.remove('/k');
    await until(() => states.told.length >= 3, 'the loss and the return');
    t.deepEqual(states.told, ['registered', 'lost', 'registered']);
    t.is(text((await space.key('/k'))?.value), 'v');
  });

  test('a lease that somebody revokes is replaced, and all keys are back (R4)', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registrations = await Promise.all([client.addKey('/d/k', 'v'), client.addKey('/d/l', 'w')]);
    const errors: unknown[] = [];
    registrations[0]?.state$.subscribe(() => errors.push(registrations[0]?.error));
    const { lease = '' } = (await space.key('/d/k')) ?? {};
    await space.revoke(lease);
    await until(async () => (await space.keys('/d/')).length === 2, 'both keys');
    t.not((await space.key('/d/k'))?.lease, lease);
    for (const registration of registrations) await untilState(registration, 'registered');
    t.true(errors.some((error) => error instanceof RevokedError));
  });

  test('a key that another one takes while ours is away is theirs, until it goes (R3)', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const registration = await client.addKey('/k', 'ours');
    await space.put('/k', 'theirs');
    await until(() => registration.error instanceof ConflictError, 'the conflict');
    t.is(registration.state, 'lost');
    t.is(text((await space.key('/k'))?.value), 'theirs');
    await registration.remove();
    t.is(text((await space.key('/k'))?.value), 'theirs', 'nor is it deleted');
  });

  test('an update or a removal that comes just after another one took the key leaves it as it is (R3)', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const [updated, removed] = [await client.addKey('/k', 'ours'), await client.addKey('/l', 'ours')];
    await Promise.all([space.put('/k', 'theirs'), space.put('/l', 'theirs')]);
    const update = updated.update('ours again').catch(() => {});
    await removed.remove();
    await until(() => updated.error instanceof ConflictError, 'the conflict');
    t.is(updated.state, 'lost');
    t.deepEqual([text((await space.key('/k'))?.value), text((await space.key('/l'))?.value)], ['theirs', 'theirs']);
    await space.remove('/k');
    await update;
    t.is(text((await space.key('/k'))?.value), 'ours again');
  });

  test('a value over the limit is a ValueTooLargeError; nothing is stored, and the value of before stays', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const tooLarge = 'x'.repeat(2 * 1024 * 1024);
    const error = await t.throwsAsync(client.addKey('/k', tooLarge), { instanceOf: ValueTooLargeError });
    t.is((error as ValueTooLargeError).code, 'VALUE_TOO_LARGE');
    t.regex(error?.message ?? '', /\/k/);
    t.is(await space.key('/k'), undefined);
    const registration = await client.addKey('/k', 'v');
    await t.throwsAsync(registration.update(tooLarge), { instanceOf: ValueTooLargeError });
    t.deepEqual([registration.value, registration.state], ['v', 'registered']);
    t.is(text((await space.key('/k'))?.value), 'v');
    await registration.update('w');
    t.is(text((await space.key('/k'))?.value), 'w');
  });

  test('a value of a megabyte and one that is empty are values', async (t) => {
    const space = await Space.open(t, world());
    const client = await space.connect();
    const large = 'ü'.repeat(500_000);
    await client.addKey('/d/large', large);
    await client.addKey('/d/empty', '');
    t.is(await client.get('/d/large'), large);
    t.is((await client.list('/d', { values: true })).entries.get('empty')?.value, '');
  });
}
