/** The elastic cluster on real etcd processes: minutes, and too heavy to run beside the other tests. */
export default {
  files: ['test/elastic/*.test.ts'],
  extensions: { ts: 'module' },
  nodeArguments: ['--import=tsx'],
  workerThreads: false,
  timeout: '5m',
  concurrency: 1,
};
