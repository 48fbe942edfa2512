#!/usr/bin/env node
/**
 * Checks what users get: packs the package, installs it into an empty folder with npm, and there loads every export, compiles a
 * program against the types under strict settings, and runs the command. Needs the npm registry.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pkg = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'check-package-'));
const user = join(work, 'user');

process.on('exit', () => rmSync(work, { recursive: true, force: true }));

function fail(what, output = '') {
  process.stderr.write(`package: ${what}\n${output}`);
  process.exit(1);
}

function run(command, args, cwd) {
  const { error, status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error !== undefined || status !== 0) {
    fail(`${command} ${args.join(' ')} failed`, `${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`);
  }
  return stdout.trim();
}

const versionOf = (name) => JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version;
const fixed = (name) => `${name}@${versionOf(name)}`;

/** Every name a user can import, with an alias for it. */
const entries = Object.keys(pkg.exports)
  .filter((subpath) => !subpath.endsWith('.json'))
  .map((subpath, index) => ({ specifier: pkg.name + subpath.slice(1), alias: `entry${index}` }));

function pack() {
  run('npm', ['pack', '--pack-destination', work], root);
  const tarball = readdirSync(work).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined) fail('npm pack made no tarball');
  run('npx', ['--no-install', 'publint', 'run', join(work, tarball), '--strict'], root);
  return join(work, tarball);
}

function install(tarball) {
  mkdirSync(user);
  writeFileSync(join(user, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  const packages = [tarball, fixed('rxjs'), fixed('typescript'), fixed('@types/node')];
  run('npm', ['install', '--no-audit', '--no-fund', '--no-save', ...packages], user);
}

function checkContents() {
  const folder = join(user, 'node_modules', pkg.name);
  const files = readdirSync(folder, { recursive: true }).map(String);
  for (const name of ['LICENSE', 'README.md', 'CHANGELOG.md', 'package.json']) {
    if (!files.includes(name)) fail(`the package lacks ${name}`);
  }
  const stray = files.filter((name) => /(^|\/)(test|benchmarks|src|scripts)(\/|$)/.test(name));
  if (stray.length > 0) fail(`the package has what users do not need: ${stray.join(', ')}`);
}

function checkTypes() {
  const imports = entries.map(({ specifier, alias }) => `import * as ${alias} from '${specifier}';`);
  const uses = entries.map(({ alias }) => `console.log(Object.keys(${alias}).length);`);
  writeFileSync(join(user, 'use.ts'), [...imports, ...uses, ''].join('\n'));
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ]) {
    const compilerOptions = {
      target: 'es2023',
      lib: ['es2023', 'esnext.disposable', 'dom'],
      types: ['node'],
      module,
      moduleResolution,
      strict: true,
      exactOptionalPropertyTypes: true,
      // The package's own declarations are what is being checked.
      skipLibCheck: false,
      noEmit: true,
    };
    writeFileSync(join(user, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
    run(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'], user);
  }
}

function checkExports() {
  for (const { specifier } of entries) {
    const program = `const names = Object.keys(await import('${specifier}')); if (names.length === 0) process.exit(1);`;
    run(process.execPath, ['--input-type=module', '--eval', program], user);
  }
}

function checkCommand() {
  for (const name of Object.keys(pkg.bin)) {
    const command = join(user, 'node_modules', '.bin', name);
    const version = run(command, ['--version'], user);
    if (version !== pkg.version) fail(`${name} --version says ${version} instead of ${pkg.version}`);
    run(command, ['--help'], user);
  }
}

install(pack());
checkContents();
checkExports();
checkTypes();
checkCommand();
process.stdout.write(`package: ${pkg.name} ${pkg.version} installs, loads, type-checks and runs\n`);
