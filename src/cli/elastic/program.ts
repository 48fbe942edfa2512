import { hostname } from 'node:os';
import { type Command, Option } from 'commander';
import type { Context } from '../context.ts';
import { type GlobalFlags, parseList, parsePositiveSeconds } from '../options.ts';
import { collect, parseCount } from './flags.ts';
import { type RecoverFlags, recover, restore } from './offline-commands.ts';
import { backup, heal, leave, plan, resize, type StatusFlags, status, wait } from './remote-commands.ts';
import type { RunFlags } from './run.ts';

type Exit = (code: number) => void;

/** `ephemeral elastic …` */
export function addElastic(program: Command, context: Context, exitWith: Exit): void {
  const elastic = program
    .command('elastic')
    .description('an etcd cluster that starts, grows, shrinks and heals by itself')
    .addHelpText('after', '\n--namespace is where the cluster’s own keys lie; the default here is /_elastic.');
  addHostCommands(elastic, context, exitWith);
  addRemoteCommands(elastic, context, exitWith);
}

function flagsOf<Flags extends GlobalFlags>(command: Command): Flags {
  return command.optsWithGlobals<Flags>();
}

function addHostCommands(elastic: Command, context: Context, exitWith: Exit): void {
  hostOptions(
    elastic
      .command('run')
      .description(
        'run this host, until a signal: ^C leaves the cluster (the only host stops), SIGTERM stops and stays a member',
      ),
  )
    .addOption(new Option('--on-signal <what>', 'what ^C and SIGTERM do').choices(['stop', 'leave']))
    .action(async (_: unknown, command: Command) => {
      const [{ runElastic }, { ElasticCluster }] = await Promise.all([import('./run.ts'), import('../../elastic.ts')]);
      exitWith(await runElastic(context, flagsOf<RunFlags>(command), (options) => new ElasticCluster(options)));
    });
  hostOptions(
    elastic.command('recover').description('after most members are lost for good: go on with this host’s alone'),
  )
    .option('--yes', 'do not ask')
    .action(async (_: unknown, command: Command) => exitWith(await recover(context, flagsOf<RecoverFlags>(command))));
  hostOptions(elastic.command('restore <snapshot>').description('found a new cluster on this host from a backup'))
    .option('--yes', 'do not ask')
    .action(async (snapshot: string, _: unknown, command: Command) => {
      exitWith(await restore(context, flagsOf<RecoverFlags>(command), snapshot));
    });
}

function addRemoteCommands(elastic: Command, context: Context, exitWith: Exit): void {
  elastic
    .command('status')
    .description(
      'one row a host; what is wrong, what is being done, what to do. Exit 0 only when healthy and as wanted',
    )
    .option('--watch', 'go on as it changes')
    .option(
      '--state-dir <folder>',
      'a host’s, for when no member answers (default: that of the host of this name, here)',
    )
    .action(async (_: unknown, command: Command) => exitWith(await status(context, flagsOf<StatusFlags>(command))));
  elastic
    .command('plan')
    .description('what would be done now and why, without doing it')
    .action(async (_: unknown, command: Command) => exitWith(await plan(context, flagsOf(command))));
  elastic
    .command('wait')
    .description('wait until all hosts see nothing left to do; --timeout S bounds it (default 120)')
    .action(async (_: unknown, command: Command) => {
      const flags = flagsOf<GlobalFlags>(command);
      const isGiven = command.getOptionValueSourceWithGlobals('timeout') === 'cli';
      exitWith(await wait(context, flags, isGiven ? flags.timeout : undefined));
    });
  elastic
    .command('resize <size>')
    .description('say how many voters there should be, from 1 to 99, and hear how many the hosts at hand allow')
    .action(async (size: string, _: unknown, command: Command) =>
      exitWith(await resize(context, flagsOf(command), size)),
    );
  elastic
    .command('leave [host]')
    .description('remove a host for good, whether or not it runs (default: this one)')
    .action(async (host: string | undefined, _: unknown, command: Command) => {
      exitWith(await leave(context, flagsOf(command), host ?? hostname()));
    });
  elastic
    .command('backup [folder]')
    .description('write a snapshot into a folder (default: the working directory)')
    .action(async (folder: string | undefined, _: unknown, command: Command) => {
      exitWith(await backup(context, flagsOf(command), folder ?? '.'));
    });
  elastic
    .command('heal')
    .description('after a NOSPACE alarm: compact, defragment one member after the other, disarm; without one, nothing')
    .action(async (_: unknown, command: Command) => exitWith(await heal(context, flagsOf(command))));
}

function hostOptions(command: Command): Command {
  return command
    .option('--hostname <name>', 'this host’s name in the cluster (default: the system’s)')
    .option('--data-dir <folder>', 'default: NAME.elastic')
    .option('--state-dir <folder>', 'what outlives the data (default: DATA-DIR.state)')
    .option('--seeds <urls>', 'client URLs of the cluster; without them this host is the first', parseList)
    .option('--bootstrap', 'found a new cluster, also on URLs that others reach')
    .option('--client-urls <urls>', 'where etcd listens for clients (default: http://127.0.0.1:2379)', parseList)
    .option('--server-urls <urls>', 'where etcd listens for members (default: http://127.0.0.1:2380)', parseList)
    .option('--advertise-client-urls <urls>', 'how clients reach it', parseList)
    .option('--advertise-server-urls <urls>', 'how members reach it', parseList)
    .option('--no-server', 'a client only, never a member')
    .option('--no-network', 'sockets in the data folder instead of ports: a cluster for this machine alone')
    .option('--ideal-cluster-size <n>', 'stored unless a size is stored already (default: 5)', parseCount)
    .option('--min-voters <n>', 'keep a dead voter where fewer would be left (default: 3)', parseCount)
    .option('--dead-after <seconds>', 'until a silent host is replaced (default: 30)', parsePositiveSeconds)
    .option('--start-timeout <seconds>', 'for a first start (default: 30)', parsePositiveSeconds)
    .option('--etcd-path <file>', 'the etcd to run (default: ETCD_BIN, else the PATH)')
    .option('--cert-file <file>', 'as etcd’s own flag, like the next seven')
    .option('--key-file <file>')
    .option('--trusted-ca-file <file>')
    .option('--client-cert-auth')
    .option('--peer-cert-file <file>')
    .option('--peer-key-file <file>')
    .option('--peer-trusted-ca-file <file>')
    .option('--peer-client-cert-auth')
    .option('--auto-compaction <age>', 'how much history is kept (default: 10m)')
    .option('--quota-bytes <n>', 'the database’s largest size', parseCount)
    .option('--snapshot-count <n>', 'entries between snapshots', parseCount)
    .option('--heartbeat-ms <n>', 'between members', parseCount)
    .option('--election-ms <n>', 'without a leader’s heartbeat until an election', parseCount)
    .option('--etcd-arg <arg>', 'passed on to etcd as it is; may be repeated', collect);
}
