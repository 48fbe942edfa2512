import test from 'ava';
import { systemClock } from '../../src/core/clock.ts';
import { MemoryServer } from '../../src/memory/memory-server.ts';
import { directoryContract } from '../contract/directories.ts';
import { listContract } from '../contract/lists.ts';
import { registrationContract } from '../contract/registrations.ts';
import { memoryWorld } from '../support/space.ts';

const server = new MemoryServer({ clock: systemClock() });
const world = memoryWorld(server);
test.after.always(() => server.close());

directoryContract(test, () => world);
registrationContract(test, () => world);
listContract(test, () => world);
