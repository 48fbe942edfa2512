import test, { type ExecutionContext } from 'ava';
import { ALL_SAFEGUARDS, type Safeguards } from './simulation/actors.ts';
import { type Report, simulate } from './simulation/run.ts';

const SEEDS = 5_000;

test('in 5,000 seeded runs of crashes, pauses and leaves nothing unsafe is done, and what is wanted is there in the end', async (t) => {
  const total = { changes: 0, faults: 0, unlucky: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const report = await simulate(seed);
    if (report.violations.length > 0) return void t.fail(describe(report));
    total.changes += report.changes;
    total.faults += report.faults;
    total.unlucky += Number(report.unlucky);
  }
  t.log(`${total.changes} changes of membership through ${total.faults} faults`);
  t.true(total.changes > 3 * SEEDS, 'too little happened for this to prove anything');
  t.true(total.unlucky < SEEDS / 500, 'a quorum was lost to bad luck too often to be bad luck');
});

test('a seed can be had again', async (t) => {
  t.deepEqual(await simulate(17), await simulate(17));
});

// The search begins shortly before a seed that was found, to be quick; where the code has changed since, it goes on.
test('without deadlines on its calls, what was paused is found to act late', findsWithout, 'deadlines', 3_800);
test('without a fence on the record, two changes at once are found', findsWithout, 'fence', 130);
test('taking old answers for fresh ones is found out', findsWithout, 'freshness', 1);
test('a controller that promotes for the nominee is found to promote the dead', findsWithout, 'selfPromotion', 2_800);

async function findsWithout(t: ExecutionContext, safeguard: keyof Safeguards, first: number): Promise<void> {
  for (let seed = first; seed < first + SEEDS; seed++) {
    const report = await simulate(seed, { ...ALL_SAFEGUARDS, [safeguard]: false });
    if (report.violations.length === 0) continue;
    t.log(describe(report));
    t.pass();
    return;
  }
  t.fail(`no seed notices that ${safeguard} is missing`);
}

function describe({ seed, violations, plans }: Report): string {
  return [`seed ${seed}`, ...violations, ...plans].join('\n');
}
