/**
 * The house's rule: dependencies go one way down,
 * cli → elastic → ephemeral → core → the store interface (src/core/store.ts) ← the adapters (src/etcd, src/memory).
 * src/index.ts and src/testing.ts join an adapter to the rest; src/demo is a user of them like any other.
 */
const inside = (...names) => `^src/(${names.join('|')})/`;

const layer = (name, ...allowed) => ({
  name: `layer-${name}`,
  comment: `src/${name} may use ${allowed.length > 0 ? allowed.map((other) => `src/${other}`).join(', ') : 'nothing else of src'}`,
  severity: 'error',
  from: { path: inside(name) },
  to: { path: '^src/', pathNot: inside(name, ...allowed) },
});

const onlyIn = (pkg, from, comment) => ({
  name: `only-there-${pkg}`,
  comment,
  severity: 'error',
  from: { path: '^src/', pathNot: from },
  to: { path: `(^|/)node_modules/${pkg}/` },
});

export default {
  forbidden: [
    layer('core'),
    layer('etcd', 'core'),
    layer('memory', 'core'),
    layer('ephemeral', 'core'),
    layer('elastic', 'ephemeral', 'core', 'etcd'),
    {
      name: 'nobody-imports-cli',
      comment: 'the command is the top: the library must work without it',
      severity: 'error',
      from: { path: '^src/', pathNot: inside('cli') },
      to: { path: inside('cli') },
    },
    {
      name: 'only-cli-imports-demo',
      severity: 'error',
      from: { path: '^src/', pathNot: inside('cli', 'demo') },
      to: { path: inside('demo') },
    },
    {
      name: 'demo-is-a-user',
      comment: 'what the demo needs from below the public surface, a user would lack as well',
      severity: 'error',
      from: { path: inside('demo') },
      to: { path: '^src/', pathNot: ['^src/(index|elastic)\\.ts$', inside('demo')] },
    },
    onlyIn('etcd3', inside('etcd'), 'one adapter knows etcd3, so that it can be replaced'),
    onlyIn('@grpc', inside('etcd'), 'as etcd3'),
    onlyIn('commander', inside('cli'), 'the library parses no command line'),
    onlyIn('rxjs', '^src/((ephemeral|cli|elastic|demo)/|index\\.ts|testing\\.ts)', 'Observables at the edge only'),
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'a file that nobody uses is dead code',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: '\\.d\\.ts$' },
      to: {},
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'what users run may not need what only developers have',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only', 'npm-peer'],
      },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Imports of types count too: they are how a layer comes to know another.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default', 'node'] },
  },
};
