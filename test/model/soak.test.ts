/** What the soak judges by must itself be right: its history of the store, and how long the dead may stand. */
import test from 'ava';
import { asTold, History } from '../soak/history.ts';
import { FULL_SIZE, planFleet } from '../soak/plan.ts';
import { ghostDeadlineMs } from '../soak/pulse.ts';

function put(history: History, key: string, revision: number, value = `v${revision}`, created = revision): void {
  history.add({ key, revision, atMs: revision * 10, value, created });
}

function remove(history: History, key: string, revision: number): void {
  history.add({ key, revision, atMs: revision * 10, value: undefined, created: 0 });
}

test('the history tells a directory as it was at each revision, however often and late its changes are heard', (t) => {
  const history = new History();
  put(history, '/svc/d/b', 2);
  put(history, '/svc/d/a', 4);
  put(history, '/svc/d//unnameable', 5);
  put(history, '/svc/other/x', 6);
  history.reached(6);
  put(history, '/svc/d/b', 2);
  remove(history, '/svc/d/b', 3);
  const told = [1, 2, 3, 4, 6].map((revision) => asTold(history.directoryAt('/svc/d', revision), false));
  t.deepEqual(told, ['', 'b', '', 'a', 'a']);
  t.is(asTold(history.directoryAt('/svc/d', 6), true), 'a=v4@4');
  t.deepEqual([history.changes, history.late], [4, 1]);
});

test('a list is behind from the first change that it does not show, and refreshes are no change', (t) => {
  const history = new History();
  put(history, '/svc/d/a', 2, 'v', 2);
  put(history, '/svc/d/a', 5, 'v', 2);
  put(history, '/svc/d/a', 7, 'w', 2);
  remove(history, '/svc/d/a', 9);
  t.is(history.firstChangeMs('/svc/d', false, 2, 8), undefined);
  t.is(history.firstChangeMs('/svc/d', true, 2, 8), 70);
  t.is(history.firstChangeMs('/svc/d', false, 2, 9), 90);
  t.is(history.firstChangeMs('/svc/d', false, 0, 9), 20);
});

test('a dead key may stand for a ttl and a second, longer for each change of leader and while nothing is written', (t) => {
  t.is(ghostDeadlineMs(10_000, 5_000, [], []), 16_000);
  t.is(ghostDeadlineMs(10_000, 5_000, [2_000, 30_000], []), 16_000);
  t.is(ghostDeadlineMs(10_000, 5_000, [12_000], []), 19_000);
  t.is(ghostDeadlineMs(10_000, 5_000, [12_000, 18_000], []), 25_000);
  t.is(ghostDeadlineMs(10_000, 5_000, [], [{ fromMs: 15_000, untilMs: 18_000 }]), 19_000);
  t.is(ghostDeadlineMs(10_000, 5_000, [], [{ fromMs: 3_000, untilMs: 9_000 }]), 16_000);
});

test('the fleet is a hundred services and a hundred watchers of every kind', (t) => {
  const clients = planFleet(FULL_SIZE).flatMap(({ clients: some }) => some);
  const keys = new Set(clients.flatMap(({ service }) => (service ? [service.key] : [])));
  const watchers = clients.flatMap(({ watcher, candidate }) =>
    watcher ? [`${watcher.path} ${watcher.via} ${watcher.values} ${candidate}`] : [],
  );
  t.deepEqual([keys.size, watchers.length], [100, 100]);
  t.true(new Set(watchers).size >= 24, `${new Set(watchers).size} kinds`);
});
