/** The benchmark's own tests: it compiles all and runs for a while. */
export default {
  files: ['test/benchmark/*.test.ts'],
  extensions: { ts: 'module' },
  nodeArguments: ['--import=tsx'],
  workerThreads: false,
  timeout: '5m',
  serial: true,
};
