import { Command, CommanderError, Option } from 'commander';
import { addDir } from './add-dir.ts';
import type { Context } from './context.ts';
import { demo } from './demo.ts';
import { collect } from './elastic/flags.ts';
import { addElastic } from './elastic/program.ts';
import { describeError, EXIT_OK, EXIT_USAGE, UsageError } from './exit.ts';
import { get } from './get.ts';
import { type LsFlags, ls } from './ls.ts';
import { type GlobalFlags, parseList, parsePositiveSeconds, parseSeconds, parseWholeSeconds } from './options.ts';
import { withoutUserinfo } from './output.ts';
import { parseReadyUrl } from './ready.ts';
import { type RegisterFlags, register } from './register.ts';
import { rmDir } from './rm-dir.ts';
import { parseRoleName, type RolesFlags, roles } from './roles.ts';
import { stat } from './stat.ts';

const DEFAULT_TIMEOUT_S = 10;

const ENVIRONMENT_HELP = `
Environment, where no flag says otherwise:
  ETCDCTL_ENDPOINTS, ETCD_ENDPOINTS, ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY,
  ETCDCTL_USER (name or name:password), ETCDCTL_PASSWORD

Names and values are whatever others wrote. ls and stat show what a terminal would obey, or nobody could see, in
escaped form (\\n, \\x1b, \\u202e, \\\\ for a backslash), on a terminal and in a pipe. get does so on a terminal alone:
a pipe gets the value as it is. What is no UTF-8 shows as U+FFFD. With --json all is exact.

Exit status:
  0 done, 1 an error (a line on stderr, with its code), 2 wrong usage, 130 after SIGINT, 143 after SIGTERM`;

/** Runs one command line and resolves with the code to exit with. Never rejects. */
export async function runProgram(args: readonly string[], context: Context): Promise<number> {
  let exitCode = EXIT_OK;
  const program = buildProgram(args, context, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has written its message, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    const { line, exitCode } = describeError(error);
    context.stderr.write(line);
    return exitCode;
  }
}

function buildProgram(args: readonly string[], context: Context, exitWith: (code: number) => void): Command {
  const program = new Command('ephemeral')
    .description('Ephemeral nodes and live membership lists on etcd.')
    .version(context.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .option('--endpoints <urls>', 'etcd’s addresses, with commas between (default: 127.0.0.1:2379)', parseList)
    .option('--namespace <prefix>', 'put before every key')
    .option('--ttl <seconds>', 'until a dead process is noticed (default: 10)', parseWholeSeconds)
    .option('--timeout <seconds>', 'to connect, and for an answer', parsePositiveSeconds, DEFAULT_TIMEOUT_S)
    .option('--cacert <file>', 'PEM: the authority that vouches for etcd')
    .option('--cert <file>', 'PEM: our certificate')
    .option('--key <file>', 'PEM: its key')
    .option('--user <name>', 'who to be for etcd')
    .option('--password-file <file>', 'holds the password of the user')
    .addOption(new Option('--password [text]').hideHelp().preset('').argParser(refusePassword))
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', ENVIRONMENT_HELP)
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      outputError: (text, write) => write(`ephemeral: ${usageText(text)}`),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  addDirectoryCommands(program, context);
  addReadingCommands(program, context);
  addRegister(program, args, context, exitWith);
  addRoles(program, context);
  addElastic(program, context, exitWith);
  program
    .command('demo')
    .description('show it all in about a minute; without --endpoints on an etcd of its own')
    .option('--elastic', 'show an etcd cluster that grows, heals and shrinks by itself instead')
    .action(async (_: unknown, command: Command) => exitWith(await demo(context, flagsOf(command))));
  return program;
}

/** Everyone on a machine can read a command line. The text is not repeated: it may be logged as well. */
function refusePassword(): never {
  throw new UsageError(
    'a password is not taken from the command line, where all on this machine can read it: put it into a file for --password-file, or into ETCDCTL_PASSWORD',
  );
}

/** What commander says, without the value of a flag that it does not know: it may be a password, and `--pasword` a slip. */
function usageText(text: string): string {
  const cut = text
    .replace(/^error: /, '')
    .replace(/^(unknown option '[^='\s]*)=[\s\S]*?'(\s*\(Did you mean [^)]*\)\s*|\s*)$/, "$1'$2");
  return withoutUserinfo(cut.replace(/argument '[\s\S]*@[\s\S]*' is invalid/, 'argument is invalid'));
}

function flagsOf<Flags extends GlobalFlags = GlobalFlags>(command: Command): Flags {
  return command.optsWithGlobals<Flags>();
}

function addDirectoryCommands(program: Command, context: Context): void {
  program
    .command('add-dir <path>')
    .description('make a directory that stays, also when it is empty')
    .action((path: string, _: unknown, command: Command) => addDir(context, flagsOf(command), path));
  program
    .command('rm-dir <path>')
    .description('remove an empty directory')
    .action((path: string, _: unknown, command: Command) => rmDir(context, flagsOf(command), path));
}

function addReadingCommands(program: Command, context: Context): void {
  program
    .command('ls <path>')
    .description('list a directory: a name a line, directories with a slash')
    .option('--watch', 'go on with + name, - name, ~ name as it changes')
    .option('--values', 'with values: name<TAB>value')
    .option('--direct', 'watch the directory itself instead of its mirror')
    .option('--wait', 'with --watch: wait for a directory that is not there yet')
    .action((path: string, _: unknown, command: Command) => ls(context, flagsOf<LsFlags>(command), path));
  program
    .command('get <path>')
    .description('print the value of a key')
    .action((path: string, _: unknown, command: Command) => get(context, flagsOf(command), path));
  program
    .command('stat <path>')
    .description('show what is stored: of a key its lease and revisions, of a directory its mirror')
    .action((path: string, _: unknown, command: Command) => stat(context, flagsOf(command), path));
}

function addRegister(
  program: Command,
  args: readonly string[],
  context: Context,
  exitWith: (code: number) => void,
): void {
  program
    .command('register <path> <value> [command...]')
    .usage('[options] PATH VALUE [-- CMD ARGS...]')
    .description(
      'hold a registration until a signal; with a command, as long as that lives (the exit status is then its)',
    )
    .option('--ready <url>', 'register once tcp://host:port or http://… answers', parseReadyUrl)
    .option('--drain <seconds>', 'on a signal: deregister, wait, then pass it on', parseSeconds)
    .addOption(new Option('--heartbeat <kind>', 'how it is kept alive').choices(['lease', 'put']).default('lease'))
    .action(async (path: string, value: string, rest: string[], _: unknown, command: Command) => {
      const child = commandAfterDashes(args, rest);
      exitWith(await register(context, flagsOf<RegisterFlags>(command), path, value, child));
    });
}

function addRoles(program: Command, context: Context): void {
  program
    .command('roles')
    .description('print the etcdctl lines that grant what a registrar and a watcher need; connects to nothing')
    .option('--dir <path>', 'only for this directory and all below it; may be given several times', collect)
    .option('--follow <namespace>', 'also for clients that follow an elastic cluster (its own is /_elastic)')
    .option('--name <name>', 'name the roles NAME-registrar and NAME-watcher', parseRoleName, 'ephemeral')
    .action((_: unknown, command: Command) => roles(context, flagsOf<RolesFlags>(command)));
}

/**
 * The command must stand behind `--`: a value with a space and no quotes around it would otherwise run its second word.
 * A `--` may have been used up before PATH, for a value that starts with a dash; a second one then precedes the command.
 */
function commandAfterDashes(args: readonly string[], rest: readonly string[]): readonly string[] {
  if (rest[0] === '--') return rest.slice(1);
  const dashes = args.indexOf('--');
  const behind = dashes === -1 ? 0 : args.length - dashes - 1;
  if (rest.length > 0 && rest.length !== behind) {
    throw new UsageError(`unexpected "${rest[0]}" after the value: quote a value with spaces, put -- before a command`);
  }
  return rest;
}
