import { SparrowError } from '@sparrow-search/engine';
import type { Command } from 'commander';

import { Context, type ServerOptions, jsonOption, withServer } from '../context.js';
import { CommandError } from '../errors.js';
import { commandName } from '../shell.js';
import { counted, duration, table } from '../terminal.js';

/** The repository that is used where none is named: a folder of the same name below `--repo-path` of the server. */
const REPOSITORY = 'backups';

/** Snapshots or repositories that are named to who asked for one that is not there. */
const MOST_NAMED = 10;

interface Snapshot {
  readonly snapshot: string;
  readonly state: string;
  readonly indices: readonly string[];
  readonly start_time: string;
  readonly duration_in_millis: number;
  readonly failures: readonly { readonly reason: string }[];
}

interface RepositoryOptions extends ServerOptions {
  readonly repository: string;
}

interface CreateOptions extends RepositoryOptions {
  readonly index?: readonly string[];
}

interface RestoreOptions extends CreateOptions {
  readonly suffix?: string;
  readonly everything?: boolean;
  /** Undefined where the command line says neither `--aliases` nor `--no-aliases`. */
  readonly aliases?: boolean;
}

/** `sparrow snapshot`: backups. */
export function addSnapshots(program: Command): void {
  const snapshot = program.command('snapshot').description('create, list, restore and delete backups');
  const about = (command: Command, result: string): Command =>
    withServer(command, jsonOption(result)).option(
      '--repository <name>',
      'snapshot repository, of type fs',
      REPOSITORY,
    );

  about(
    snapshot
      .command('create')
      .description('back up all indices, settings, keys and uploaded models, or only some indices')
      .argument('[name]', 'name of the snapshot; by default the current date and time')
      .option('--index <pattern...>', 'only these indices'),
    'the snapshot, as in the answer of GET /_snapshot/REPOSITORY/NAME',
  ).action(async (given: string | undefined, options: CreateOptions) => {
    const context = new Context(options);
    const { repository, index } = options;
    const name = given ?? new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
    await ensureRepository(context, repository);
    const everything = { feature_states: ['security'], include_models: true };
    const body = index === undefined ? everything : { indices: index.join(','), include_global_state: false };
    const answer = await context.remote.request<{ snapshot: Snapshot }>('PUT', pathOf(repository, name), {
      query: { wait_for_completion: true },
      body,
    });
    const { snapshot: made } = answer;
    context.show(
      made,
      () =>
        `${made.snapshot}: ${counted(made.indices.length, 'index', 'indices')} in ${duration(made.duration_in_millis)}, in ${folderOf(repository)}\n`,
    );
    if (index !== undefined && made.indices.length === 0) {
      context.note(`warning: there is no index ${index.join(', ')}, so nothing is in this snapshot`);
    }
    if (made.state !== 'SUCCESS') {
      throw new CommandError(
        `the snapshot ended as ${made.state}: ${made.failures[0]?.reason ?? 'see the log of the server'}`,
      );
    }
  });

  about(
    snapshot.command('list', { isDefault: true }).description('list the snapshots of a repository'),
    'a list of snapshots, each as in the answer of GET /_snapshot/REPOSITORY/_all',
  ).action(async (options: RepositoryOptions) => {
    const context = new Context(options);
    const snapshots = await snapshotsIn(context, options.repository);
    context.show(snapshots, (out) => {
      if (snapshots.length === 0)
        return `no snapshots in ${folderOf(options.repository)}: \`${commandName()} snapshot create\` makes one\n`;
      return table(
        out,
        ['snapshot', 'state', 'made', 'indices'],
        snapshots.map((one) => [
          one.snapshot,
          one.state === 'SUCCESS' ? out.good(one.state) : one.state,
          one.start_time,
          one.indices.join(' '),
        ]),
      );
    });
  });

  about(
    snapshot
      .command('restore')
      .description('restore indices')
      .argument('<name>', 'name of the snapshot')
      .option('--index <pattern...>', 'only these indices')
      .option('--suffix <text>', 'append this to the names of the restored indices, which then get no aliases')
      .option('--aliases', 'with --suffix, restore the aliases of the indices too')
      .option('--no-aliases', 'leave out the aliases of the indices, such as one that is in use again by now')
      .option('--everything', 'restore settings, keys and uploaded models as well'),
    '{snapshot, indices, shards}',
  ).action(async (name: string, options: RestoreOptions) => {
    const context = new Context(options);
    const { repository, index, suffix, everything } = options;
    // An alias that is in use would point to the copy as well: everything would be found twice.
    const aliases = options.aliases ?? suffix === undefined;
    const body = {
      ...(index === undefined ? {} : { indices: index.join(',') }),
      ...(suffix === undefined ? {} : { rename_pattern: '(.+)', rename_replacement: `$1${suffix}` }),
      ...(aliases ? {} : { include_aliases: false }),
      ...(everything === true
        ? { include_global_state: true, feature_states: ['security'], include_models: true }
        : {}),
    };
    const restored = (): Promise<{ readonly snapshot: { readonly indices: readonly string[] } }> =>
      context.remote.request('POST', `${pathOf(repository, name)}/_restore`, {
        query: { wait_for_completion: true },
        body,
      });
    const answer = await reading(context, repository, restored).catch(async (error: unknown) => {
      throw withRemedy(await namingSnapshots(context, error, repository, name));
    });
    const { indices } = answer.snapshot;
    const leftOut = options.aliases === undefined && !aliases && indices.length > 0;
    const said = leftOut ? ' (without aliases; --aliases restores them too)' : '';
    context.show(answer.snapshot, () => `restored: ${indices.join(', ') || 'no index'}${said}\n`);
  });

  about(
    snapshot.command('delete').description('delete a snapshot').argument('<name>', 'name of the snapshot'),
    'the answer of DELETE /_snapshot/REPOSITORY/NAME',
  ).action(async (name: string, options: RepositoryOptions) => {
    const context = new Context(options);
    const { repository } = options;
    const answer = await context.remote.request('DELETE', pathOf(repository, name)).catch(async (error: unknown) => {
      throw await namingSnapshots(context, error, repository, name);
    });
    context.show(answer, () => `${name} is deleted\n`);
  });
}

/** The error of a restore with the option that helps against it, where there is one. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof SparrowError)) return error;
  const { message } = error;
  const remedy = message.includes('open index with same name already exists')
    ? 'add --suffix -restored to restore it beside the one that is there, or delete that one'
    : message.includes('more than one write index')
      ? 'add --no-aliases to restore the indices without their aliases'
      : undefined;
  return remedy === undefined ? error : new CommandError(`${message}: ${remedy}`, { cause: error });
}

/** The snapshots of a repository; none of the usual one where there is no folder yet. */
async function snapshotsIn(context: Context, repository: string): Promise<readonly Snapshot[]> {
  try {
    const path = pathOf(repository, '_all');
    const listed = (): Promise<{ readonly snapshots: readonly Snapshot[] }> => context.remote.request('GET', path);
    return (await reading(context, repository, listed)).snapshots;
  } catch (error) {
    throw isMissingRepository(error) ? await namingRepositories(context, error, repository) : error;
  }
}

/**
 * Does what only reads a repository. The usual one may be full of the snapshots of another server, and not known to this one, to which only
 * its first snapshot makes it known: then it is registered as long as it is read, and read-only, as the other server may write into it.
 */
async function reading<T>(context: Context, repository: string, read: () => Promise<T>): Promise<T> {
  const { remote } = context;
  try {
    return await read();
  } catch (error) {
    if (!isMissingRepository(error) || repository !== REPOSITORY) throw error;
    await register(context, repository, { readonly: true }).catch((refused: unknown) => {
      if (!(refused instanceof SparrowError) || refused.status !== 403) throw refused;
      throw new CommandError(`${unregistered(repository)}; this key may not register it`, { cause: refused });
    });
  }
  try {
    return await read();
  } finally {
    // Whether that succeeds says nothing about what was read.
    await remote.request('DELETE', `/_snapshot/${encodeURIComponent(repository)}`).catch(() => undefined);
  }
}

function unregistered(repository: string): string {
  return `the repository [${repository}] is not registered on this server: \`${commandName()} snapshot create\` registers it`;
}

/**
 * The error of a command whose snapshot or repository is missing, with the names of those that are there; any other error as it is.
 */
async function namingSnapshots(context: Context, error: unknown, repository: string, name: string): Promise<unknown> {
  if (isMissingRepository(error) && repository !== REPOSITORY) return namingRepositories(context, error, repository);
  // A restore tells a missing snapshot by the type that all its failures have.
  const types = ['repository_missing_exception', 'snapshot_missing_exception', 'snapshot_restore_exception'];
  if (!(error instanceof SparrowError) || !types.includes(error.type)) return error;
  const names = await snapshotsIn(context, repository).then(
    (found) => found.map(({ snapshot }) => snapshot),
    () => undefined,
  );
  if (isMissingRepository(error) && names?.includes(name) === true)
    return new CommandError(unregistered(repository), { cause: error });
  if (names === undefined || names.includes(name)) return error;
  const there =
    names.length === 0
      ? `there are none in ${folderOf(repository)}; \`${commandName()} snapshot create\` makes one`
      : `it has ${list(names)}`;
  return new CommandError(`there is no snapshot [${name}] in the repository [${repository}]: ${there}`, {
    cause: error,
  });
}

async function namingRepositories({ remote }: Context, cause: unknown, repository: string): Promise<CommandError> {
  const names = await remote.request<Readonly<Record<string, unknown>>>('GET', '/_snapshot').then(
    (found) => Object.keys(found),
    // The key may not see them.
    () => [],
  );
  const those = names.length === 1 ? `there is only [${names.join('')}]` : `the repositories are ${list(names.sort())}`;
  const there = names.length === 0 ? '' : `; ${those}`;
  return new CommandError(`there is no snapshot repository [${repository}]${there}`, { cause });
}

function isMissingRepository(error: unknown): boolean {
  return error instanceof SparrowError && error.type === 'repository_missing_exception';
}

/** The names of a list; of a long one the last, which are the newest. */
function list(names: readonly string[]): string {
  return `${names.length > MOST_NAMED ? '… ' : ''}${names.slice(-MOST_NAMED).join(', ')}`;
}

/** Where a repository is looked for, in words: the server does not tell its folders. */
function folderOf(repository: string): string {
  return repository === REPOSITORY
    ? `[${REPOSITORY}], a folder under the server's --repo-path (by default [snapshots], next to its data directory)`
    : `the repository [${repository}]`;
}

/** Makes the repository unless there is one of that name. */
async function ensureRepository(context: Context, repository: string): Promise<void> {
  const known = await context.remote.request<Readonly<Record<string, unknown>>>('GET', '/_snapshot');
  if (!(repository in known)) await register(context, repository);
}

async function register({ remote }: Context, repository: string, settings: object = {}): Promise<void> {
  const body = { type: 'fs', settings: { location: repository, ...settings } };
  await remote.request('PUT', `/_snapshot/${encodeURIComponent(repository)}`, { body });
}

function pathOf(repository: string, snapshot: string): string {
  return `/_snapshot/${encodeURIComponent(repository)}/${encodeURIComponent(snapshot)}`;
}
