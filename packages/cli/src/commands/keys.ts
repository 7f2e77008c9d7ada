import { resolve } from 'node:path';
import process from 'node:process';

import { NativeSearchEngine, SparrowError } from '@sparrow-search/engine';
import { KeyStore } from '@sparrow-search/http/keys';
import { type Command, InvalidArgumentError, Option } from 'commander';

import { Context, type ServerOptions, jsonOption, withServer } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { dataOf } from '../remote.js';
import { oneLine, table, terminal } from '../terminal.js';

const KEYS = '/_security/api_key';

interface Key {
  readonly id: string;
  readonly name: string;
  readonly creation: number;
  readonly expiration?: number;
  readonly invalidated: boolean;
  readonly username: string;
  readonly role_descriptors?: Readonly<Record<string, Role>>;
  /** Present where the key that made it may not do everything itself. */
  readonly limited_by?: unknown;
}

/** What a key may do, as it was said when it was made. */
interface Role {
  readonly cluster?: readonly string[];
  readonly indices?: readonly { readonly names: string | readonly string[]; readonly privileges: readonly string[] }[];
  /** Another name for `indices`. */
  readonly index?: Role['indices'];
}

interface NewOptions extends ServerOptions {
  readonly index?: readonly string[];
  readonly can?: readonly string[];
  readonly cluster?: readonly string[];
  readonly expires?: string;
}

/** `sparrow key`: makes API keys, lists and ends them. */
export function addKeys(program: Command): void {
  const key = program.command('key').description('make, list and revoke API keys; replace a lost owner key');

  withServer(
    key
      .command('new')
      .description('make a key, which is shown only once')
      .argument('<name>', 'name of the key, such as what it is for')
      .option('--index <pattern...>', 'indices it may use, such as articles or news-*')
      .option(
        '--can <privilege...>',
        'what it may do with them: read (the default), write, create_doc, manage, all, …; for the console and sparrow search --by also view_index_metadata, which read does not include',
      )
      .option('--cluster <privilege...>', 'what it may do besides, such as monitor or manage_ingest_pipelines')
      .addOption(new Option('--expires <time>', 'how long it is valid, such as 90d').argParser(timeOf)),
    jsonOption('the answer of POST /_security/api_key, with the key as encoded'),
  ).action(async (name: string, options: NewOptions) => {
    const { index: names, can: privileges, cluster, expires: expiration } = options;
    if (privileges !== undefined && names === undefined) throw new UsageError('--can needs --index');
    const context = new Context(options);
    const role = {
      ...(cluster === undefined ? {} : { cluster }),
      ...(names === undefined ? {} : { indices: [{ names, privileges: privileges ?? ['read'] }] }),
    };
    // A key without a role would have all the rights of its maker: that has to be asked for.
    if (Object.keys(role).length === 0) {
      throw new UsageError(
        'say what the key may do, with --index (and --can) or --cluster; `--cluster all --index "*" --can all` is everything',
      );
    }
    const body = { name, expiration, role_descriptors: { [name]: role } };
    for (const pattern of names ?? []) await noteUnmatched(context, pattern);
    const made = await context.remote.request<{ id: string; encoded: string }>('POST', KEYS, { body });
    context.note(`key ${made.id}, shown this once:`);
    context.show(made, () => `${made.encoded}\n`);
  });

  withServer(
    key
      .command('list')
      .description('list the valid keys, and what each may do')
      .option('--all', 'also those that have expired or were revoked'),
    jsonOption('a list of keys, each as in the answer of GET /_security/api_key'),
  ).action(async (options: ServerOptions & { all?: boolean }) => {
    const context = new Context(options);
    const { api_keys: keys } = await context.remote.request<{ api_keys: readonly Key[] }>('GET', KEYS, {
      query: { with_limited_by: true },
    });
    const shown = keys.filter((one) => options.all === true || stateOf(one) === 'valid');
    context.show(shown, (out) =>
      table(
        out,
        ['id', 'name', 'made', 'ends', 'state', 'may do'],
        shown.map((one) => {
          const state = stateOf(one);
          return [
            one.id,
            one.name,
            day(one.creation),
            one.expiration === undefined ? 'never' : day(one.expiration),
            state === 'valid' ? out.good(state) : out.dim(state),
            oneLine(rightsOf(one), 80),
          ];
        }),
      ),
    );
  });

  withServer(
    key
      .command('revoke')
      .description('revoke keys, with immediate effect')
      .argument('<key...>', 'ids of the keys; with --name, their names')
      .option('--name', 'take the arguments as names'),
    jsonOption('{revoked}, the ids in a list'),
  ).action(async (given: readonly string[], options: ServerOptions & { name?: boolean }) => {
    const context = new Context(options);
    const bodies = options.name === true ? given.map((name) => ({ name })) : [{ ids: given }];
    const ended: string[] = [];
    for (const body of bodies) {
      const answer = await context.remote.request<{ invalidated_api_keys: string[] }>('DELETE', KEYS, { body });
      ended.push(...answer.invalidated_api_keys);
    }
    if (ended.length === 0) {
      const [what, hint] =
        options.name === true
          ? ['name', 'the owner key is replaced by `sparrow key reset-owner`']
          : ['id', 'names need --name'];
      throw new CommandError(`no valid key that can be revoked has the ${what} ${given.join(' or ')}; ${hint}`);
    }
    context.show({ revoked: ended }, () => ended.map((id) => `${id} is revoked\n`).join(''));
  });

  key
    .command('reset-owner')
    .description('make a new owner key in place of a lost one; no server may have the data directory open')
    .option('--data <dir>', 'the data directory (SPARROW_DATA, ./data)')
    .addOption(jsonOption('{id, encoded}'))
    .action(async ({ data: given, json }: { data?: string; json?: boolean }) => {
      const data = resolve(given ?? dataOf(process.env));
      const issued = await resetOwner(data);
      const { out, err } = terminal();
      if (json !== true) err.write(`the owner key of ${data}, also in ${KeyStore.ownerKeyFile(data)}:\n`);
      out.write(
        json === true ? `${JSON.stringify({ id: issued.key.id, encoded: issued.encoded })}\n` : `${issued.encoded}\n`,
      );
    });
}

/** Says of a name or pattern that it is about no index yet: a slip of the hand makes a key that finds nothing. */
async function noteUnmatched(context: Context, pattern: string): Promise<void> {
  const found = await context.remote
    .request<{ indices: unknown[]; aliases: unknown[]; data_streams: unknown[] }>(
      'GET',
      `/_resolve/index/${encodeURIComponent(pattern)}`,
      { query: { expand_wildcards: 'all' } },
    )
    .then(({ indices, aliases, data_streams: streams }) => indices.length + aliases.length + streams.length)
    // A key that may not resolve names gets no note.
    .catch((error: unknown) => (error instanceof SparrowError && error.status === 404 ? 0 : undefined));
  if (found === 0)
    context.note(
      `there is no index [${pattern}] yet: the key can use it as soon as it exists; if the name is misspelt, revoke the key`,
    );
}

/** A time as the server reads it. */
function timeOf(value: string): string {
  if (/^\d+(?:d|h|m|s|ms|micros|nanos)$/.test(value)) return value;
  throw new InvalidArgumentError('it must be a number with a unit, such as 90d, 12h or 30m.');
}

async function resetOwner(data: string): Promise<Awaited<ReturnType<KeyStore['createOwner']>>> {
  const keys = await KeyStore.open(data).catch((cause: unknown) => {
    throw new CommandError(cause instanceof Error ? cause.message : String(cause), { cause });
  });
  const former = keys.owner();
  if (former === undefined)
    throw new CommandError(`there is no owner key in ${data}: is it the data directory of a server?`);
  // Holds the directory's lock: a server that runs would not hear of the new key, and write over it.
  const engine = await NativeSearchEngine.open({
    data,
    models: [],
    deployAtStart: false,
    log: { level: 'silent', asText: true },
  });
  try {
    const issued = await keys.createOwner(data, Date.now());
    await keys.invalidate([former.id], Date.now());
    return issued;
  } finally {
    await engine.close();
  }
}

function stateOf({ invalidated, expiration = Infinity }: Key): 'valid' | 'revoked' | 'expired' {
  if (invalidated) return 'revoked';
  return expiration <= Date.now() ? 'expired' : 'valid';
}

/** The rights of a key in words: `articles: read; cluster: monitor`. */
function rightsOf({ role_descriptors: roles = {}, limited_by: limits }: Key): string {
  const each = Object.values(roles).flatMap(({ cluster = [], indices, index }) => [
    ...(indices ?? index ?? []).map(
      ({ names, privileges }) => `${[names].flat().join(', ')}: ${privileges.join(', ')}`,
    ),
    ...(cluster.length === 0 ? [] : [`cluster: ${cluster.join(', ')}`]),
  ]);
  const within = limits === undefined ? '' : ' (within the rights of its maker)';
  if (Object.keys(roles).length === 0) return limits === undefined ? 'everything' : 'what its maker may';
  return `${each.join('; ') || 'nothing'}${within}`;
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
