import type { Context } from './context.ts';
import { type GlobalFlags, givenEndpoints } from './options.ts';

/** Against the endpoints that are given; without, the demo starts an etcd of its own. */
export function demo(context: Context, flags: GlobalFlags): Promise<number> {
  return context.runDemo({ endpoints: givenEndpoints(flags, context.env) });
}
