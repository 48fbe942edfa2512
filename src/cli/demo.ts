import type { Context } from './context.ts';
import { UsageError } from './exit.ts';
import { type GlobalFlags, givenEndpoints } from './options.ts';

/** Flags that have no meaning for the demo, which makes its own clients in its own namespace. */
const FOREIGN = {
  namespace: '--namespace',
  ttl: '--ttl',
  cacert: '--cacert',
  cert: '--cert',
  key: '--key',
  user: '--user',
  passwordFile: '--password-file',
  json: '--json',
} as const satisfies Partial<Record<keyof GlobalFlags, string>>;

interface DemoFlags extends GlobalFlags {
  elastic?: boolean;
}

/** Against the endpoints that are given; without, the demo starts an etcd of its own. */
export async function demo(context: Context, flags: DemoFlags): Promise<number> {
  const given = Object.entries(FOREIGN).flatMap(([name, flag]) => (flags[name as keyof GlobalFlags] ? [flag] : []));
  if (given.length > 0) throw new UsageError(`demo takes --endpoints alone, not ${given.join(', ')}`);
  if (!flags.elastic) return context.runDemo({ endpoints: givenEndpoints(flags, context.env), elastic: false });
  if (flags.endpoints) throw new UsageError('demo --elastic takes no --endpoints: it runs an etcd cluster of its own');
  return context.runDemo({ endpoints: undefined, elastic: true });
}
