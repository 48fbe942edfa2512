/** Where each of the demo's processes begins: its task stands on the command line. */
import { host } from './elastic-host.ts';
import { gateway } from './gateway.ts';
import { keeper } from './keeper.ts';
import { Parent } from './parent.ts';
import { service } from './service.ts';
import type { ReportOf, Role, Task } from './tasks.ts';
import { watchers } from './watchers.ts';

async function run<R extends Role>(perform: (parent: Parent<ReportOf[R]>) => Promise<void>): Promise<void> {
  const parent = new Parent<ReportOf[R]>();
  try {
    await perform(parent);
    process.exit(0);
  } catch (error) {
    parent.fail(error);
  }
}

/** As `run`, for those who leave at once when the demo is gone: whatever they hold ends with their leases. */
function runBound<R extends Role>(perform: (parent: Parent<ReportOf[R]>) => Promise<void>): Promise<void> {
  return run<R>((parent) => {
    if (parent.gone.aborted) process.exit(1);
    parent.gone.addEventListener('abort', () => process.exit(1));
    return perform(parent);
  });
}

const task = JSON.parse(process.argv[2] ?? '') as Task;
switch (task.role) {
  case 'keeper':
    await run<'keeper'>((parent) => keeper(task, parent));
    break;
  case 'service':
    await runBound<'service'>((parent) => service(task, parent));
    break;
  case 'gateway':
    await runBound<'gateway'>((parent) => gateway(task, parent));
    break;
  case 'host':
    await run<'host'>((parent) => host(task, parent));
    break;
  case 'watchers':
    await runBound<'watchers'>((parent) => watchers(task, parent));
    break;
}
