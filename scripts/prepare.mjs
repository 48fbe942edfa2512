#!/usr/bin/env node
/**
 * Makes a fresh clone ready for tests, demo and benchmarks: the npm packages that package-lock.json names, etcd with etcdctl, and
 * what else the tests call.
 * Says nothing when nothing is lacking. Plain Node, because it runs before anything is installed.
 *
 *   node scripts/prepare.mjs          all of it
 *   node scripts/prepare.mjs --demo   only what the demo needs: not etcd where ETCD_ENDPOINTS is set
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const OLDEST_NODE = [20, 19];
const OLDEST_ETCD = [3, 4];
const ETCD = ['etcd', 'etcdctl'];
/** The tests make certificates, and look after the processes that they start. */
const TOOLS = ['openssl', 'ps'];

const say = (line) => process.stderr.write(`prepare: ${line}\n`);

function fail(...lines) {
  for (const line of lines) say(line);
  process.exit(1);
}

const isOlder = ([major, minor], [oldestMajor, oldestMinor]) =>
  major < oldestMajor || (major === oldestMajor && minor < oldestMinor);

function run(command, args, options = {}) {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    // stdout stays clean for whoever reads the tests' results.
    stdio: ['ignore', process.stderr, process.stderr],
    ...options,
  });
  return error === undefined && status === 0;
}

// --- the npm packages

const readLock = (path) => {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  } catch {
    return undefined;
  }
};

/** npm notes what it installed in node_modules/.package-lock.json; an interrupted install leaves none. */
function packagesAreInstalled() {
  const wanted = readLock('package-lock.json');
  if (wanted === undefined) fail('package-lock.json is missing or damaged: restore it from version control');
  const installed = readLock('node_modules/.package-lock.json');
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true;
    const there = installed[path];
    // Optional ones are built for other systems, mostly.
    if (there === undefined) return optional === true || devOptional === true;
    return there.version === version && there.integrity === integrity;
  });
}

function preparePackages() {
  if (packagesAreInstalled()) return;
  say('installing the npm packages (npm ci)');
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath;
  const done = npm?.endsWith('npm-cli.js')
    ? run(process.execPath, [npm, ...args])
    : run('npm', args, { shell: process.platform === 'win32' });
  if (!done) fail('npm ci failed, see above; it needs the npm registry');
}

// --- programs

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const searchPath = () => (process.env.PATH ?? '').split(delimiter).filter((dir) => dir !== '');

function find(program) {
  const { ETCD_BIN_DIR } = process.env;
  // A directory that is named must be the one used: a typing error should not test another etcd.
  const dirs = ETCD_BIN_DIR && ETCD.includes(program) ? [ETCD_BIN_DIR] : searchPath();
  return dirs.map((dir) => join(dir, program)).find(isExecutable);
}

const lackingOf = (programs) => programs.filter((program) => find(program) === undefined);

const APT_INSTALL = ['apt-get', '-qy', '-o', 'DPkg::Lock::Timeout=300', 'install'];
const OTHERS = { openssl: ['openssl'], ps: ['procps'] };

/** How programs are installed, and from which packages: where there are several, they are tried one after the other. */
const INSTALLERS = [
  {
    tool: 'apt-get',
    asRoot: true,
    update: ['apt-get', '-q', 'update'],
    install: APT_INSTALL,
    // Older releases have both in one package.
    packages: { etcd: ['etcd-server', 'etcd'], etcdctl: ['etcd-client', 'etcd'], ...OTHERS },
  },
  {
    tool: 'brew',
    asRoot: false,
    install: ['brew', 'install'],
    packages: { etcd: ['etcd'], etcdctl: ['etcd'], ...OTHERS },
  },
  {
    tool: 'dnf',
    asRoot: true,
    install: ['dnf', '-y', 'install'],
    packages: { etcd: ['etcd'], etcdctl: ['etcd'], ...OTHERS, ps: ['procps-ng'] },
  },
  {
    tool: 'apk',
    asRoot: true,
    install: ['apk', 'add'],
    packages: { etcd: ['etcd'], etcdctl: ['etcd-ctl'], ...OTHERS },
  },
];

/** What to put before a command so that it runs as root; undefined when that cannot be had without asking for a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const silently = { stdio: 'ignore' };
  return find('sudo') !== undefined && run('sudo', ['-n', 'true'], silently) ? ['sudo', '-n'] : undefined;
}

function install(programs) {
  const installer = INSTALLERS.find(({ tool }) => find(tool) !== undefined);
  const prefix = installer?.asRoot ? rootPrefix() : [];
  if (installer === undefined || prefix === undefined) return;
  say(`installing ${programs.join(', ')}`);
  const execute = (command) => {
    // Through env, because sudo drops what it is not told to keep.
    const [program, ...args] = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', ...command];
    say([...prefix, ...command].join(' '));
    run(program, args);
  };
  if (installer.update !== undefined) execute(installer.update);
  const attempts = Math.max(...programs.map((program) => installer.packages[program].length));
  for (let attempt = 0; attempt < attempts; attempt++) {
    const names = lackingOf(programs).map((program) => {
      const candidates = installer.packages[program];
      return candidates[Math.min(attempt, candidates.length - 1)];
    });
    if (names.length > 0) execute([...installer.install, ...new Set(names)]);
  }
}

function etcdVersion() {
  const { stdout } = spawnSync(find('etcd'), ['--version'], { encoding: 'utf8' });
  const [, major, minor] = /etcd Version: (\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

const BY_HAND = [
  'Install etcd 3.4 or newer, with etcdctl, in one of these ways:',
  '  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y etcd-server etcd-client',
  '  macOS:           brew install etcd',
  '  any other:       unpack a release of https://github.com/etcd-io/etcd/releases and set ETCD_BIN_DIR to its folder',
  'Nothing has to be started: tests and demo start their own, on free ports.',
];

function preparePrograms(programs) {
  const isInstallable = (program) => !(process.env.ETCD_BIN_DIR && ETCD.includes(program));
  const wanted = lackingOf(programs).filter(isInstallable);
  if (wanted.length > 0) install(wanted);
  const lacking = lackingOf(programs);
  if (lacking.length === 0) return;
  const where = process.env.ETCD_BIN_DIR ? ` (ETCD_BIN_DIR is ${process.env.ETCD_BIN_DIR})` : '';
  const advice = lacking.some((program) => ETCD.includes(program))
    ? BY_HAND
    : ['Install it with your system’s packages.'];
  fail(`not found: ${lacking.join(', ')}${where}.`, ...advice);
}

function checkEtcd() {
  const version = etcdVersion();
  if (version === undefined) fail(`${find('etcd')} does not tell its version: is it etcd?`, ...BY_HAND);
  if (isOlder(version, OLDEST_ETCD)) fail(`${find('etcd')} is ${version.join('.')}, which is too old.`, ...BY_HAND);
}

// ---

if (isOlder(process.versions.node.split('.').map(Number), OLDEST_NODE)) {
  fail(`this is Node ${process.versions.node}; ${OLDEST_NODE.join('.')} or newer is needed`);
}
preparePackages();
const isDemo = process.argv.includes('--demo');
const needsEtcd = !(isDemo && process.env.ETCD_ENDPOINTS);
preparePrograms([...(needsEtcd ? ETCD : []), ...(isDemo ? [] : TOOLS)]);
if (needsEtcd) checkEtcd();
