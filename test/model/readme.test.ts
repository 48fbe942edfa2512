import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import ts from 'typescript';
import { figures } from '../../benchmarks/report/figures.ts';
import type { Results } from '../../benchmarks/results.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const samples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code);

/** Below the project, so that the package's own name means the sources. */
const folder = mkdtempSync(join(root, '.readme-'));
const files = samples.map((code, index) => {
  const file = join(folder, `sample-${index + 1}.mts`);
  writeFileSync(file, code);
  return file;
});
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

test('the samples of the README compile', (t) => {
  t.true(samples.length >= 4);
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram(files, { ...options, noUnusedLocals: false, noUnusedParameters: false });
  const told = ts.getPreEmitDiagnostics(program).map((diagnostic) => {
    const where = diagnostic.file ? diagnostic.file.fileName.slice(root.length) : '';
    return `${where}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')}`;
  });
  t.deepEqual(told, []);
});

test('the figures of the README are those of the results that it names', (t) => {
  const [, published = ''] = /<!-- figures:start -->\n([\s\S]*?)<!-- figures:end -->/.exec(readme) ?? [];
  const [, file = ''] = /`benchmarks\/results\/([^`]+)`/.exec(published) ?? [];
  const results = JSON.parse(readFileSync(join(root, 'benchmarks', 'results', file), 'utf8')) as Results;
  t.is(published, figures(results, file));
});

test('the sample of a unit test does what it says', async (t) => {
  const sample = files[samples.findIndex((code) => code.includes('MemoryEtcd'))];
  await t.notThrowsAsync(
    promisify(execFile)(process.execPath, ['--import', 'tsx', sample ?? ''], { cwd: root, timeout: 60_000 }),
  );
});

test('the README names every count and time that is kept', (t) => {
  const source = readFileSync(join(root, 'src/ephemeral/stats.ts'), 'utf8');
  const [types = ''] = source.split('/** Where counts');
  const names = [...types.matchAll(/'([a-z]+\.[A-Za-z]+)'/g)].map(([, name = '']) => name);
  t.true(names.length >= 10);
  for (const name of names) t.true(readme.includes(name), name);
});
