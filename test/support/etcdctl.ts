import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { etcdctlBinary } from './etcd-process.ts';

const run = promisify(execFile);

/** Runs etcdctl against an endpoint and resolves to what it printed. Rejects, with its stderr, when it fails. */
export async function etcdctl(endpoint: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(etcdctlBinary(), ['--endpoints', endpoint, ...args], {
    env: { ...process.env, ETCDCTL_API: '3' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
