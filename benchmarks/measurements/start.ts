/** What it costs to have it at all: import, connect, install. */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { BUILD, FOLDER, NAMES } from '../contestants.ts';

const ROOT = join(FOLDER, '..');
const OURS = join(BUILD, 'src', 'index.js');

/** Prints milliseconds of import, and from there until a first answer. */
const PROGRAMS = {
  [NAMES.mirror]: `
    const start = performance.now();
    const { EtcdEphemeral } = await import(process.argv[1]);
    const imported = performance.now();
    const client = await EtcdEphemeral.connect({ hosts: process.argv[2] });
    console.log(imported - start, performance.now() - imported);
    await client.close();`,
  [NAMES.etcd3]: `
    const start = performance.now();
    const { Etcd3 } = await import('etcd3');
    const imported = performance.now();
    const client = new Etcd3({ hosts: process.argv[2] });
    await client.get('nothing');
    console.log(imported - start, performance.now() - imported);
    client.close();`,
};

function bytesOf(path: string): number {
  const stat = lstatSync(path);
  if (!stat.isDirectory()) return stat.size;
  return readdirSync(path).reduce((sum, name) => (name === 'node_modules' ? sum : sum + bytesOf(join(path, name))), 0);
}

/** Where a package finds another one, as Node looks for it. */
function resolve(from: string, name: string): string | undefined {
  for (let folder = from; folder.startsWith(ROOT); folder = join(folder, '..')) {
    const path = join(folder, 'node_modules', name);
    if (existsSync(path)) return path;
  }
  return undefined;
}

/** The folders that an install of these packages brings. */
function closure(names: readonly string[], from: string, found: Set<string> = new Set()): Set<string> {
  for (const name of names) {
    const path = resolve(from, name);
    if (path === undefined || found.has(path)) continue;
    found.add(path);
    const { dependencies = {} } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>;
    };
    closure(Object.keys(dependencies), path, found);
  }
  return found;
}

function installSizes(bench: Bench): void {
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    peerDependencies: Record<string, string>;
  };
  const wanted = { ...own.dependencies, ...own.peerDependencies };
  const ours = closure(Object.keys(wanted), ROOT);
  const etcd3 = closure(['etcd3'], ROOT);
  for (const [of, folders, more] of [
    [NAMES.mirror, ours, bytesOf(join(BUILD, 'src'))],
    [NAMES.etcd3, etcd3, 0],
  ] as const) {
    const bytes = [...folders].reduce((sum, folder) => sum + bytesOf(folder), more);
    const key = { measurement: 'start', of, n: 1 };
    bench.samples.add({ ...key, metric: 'install size' }, 'bytes', bytes);
    bench.samples.add({ ...key, metric: 'packages' }, 'packages', folders.size + (more > 0 ? 1 : 0));
  }
}

export async function start(bench: Bench): Promise<void> {
  const rounds = bench.options.rounds ?? (bench.options.quick ? 1 : 10);
  for (let round = 0; round < rounds; round += 1) {
    bench.say(`start: round ${round + 1} of ${rounds}`);
    for (const [of, program] of Object.entries(PROGRAMS)) {
      const args = ['--input-type=module', '-e', program, OURS, bench.server.endpoint];
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
      if (status !== 0) throw new Error(`start, ${of}: ${stderr}`);
      const [importMs = 0, connectMs = 0] = stdout.trim().split(' ').map(Number);
      const key = { measurement: 'start', of, n: 1 };
      bench.samples.add({ ...key, metric: 'import' }, 'ms', importMs);
      bench.samples.add({ ...key, metric: 'connect' }, 'ms', connectMs);
    }
  }
  installSizes(bench);
}
