import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import type { Migrated, MigrationOptions } from '@sparrow-search/cluster';
import { type SearchEngine, NativeSearchEngine, embeddedModels } from '@sparrow-search/engine';
import { type Command, Option } from 'commander';

import { integerOption, interruptible, jsonOption } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { progressBeside } from '../progress.js';
import { type Sink, counted, terminal } from '../terminal.js';

interface Options {
  readonly from: string;
  readonly to: string;
  readonly index?: readonly string[];
  readonly clusterCa?: string;
  readonly clusterCredentials?: string;
  readonly shards?: number;
  readonly batch: number;
  readonly samples: number;
  readonly json?: boolean;
}

/** Most differences that are told of an index. */
const MOST_TOLD = 5;

/** `sparrow migrate`: indices of a data directory into a cluster, or of a cluster into a data directory. */
export function addMigrate(program: Command): void {
  program
    .command('migrate')
    .description('move indices between a data directory that no server has open and a cluster')
    .requiredOption('--from <place>', 'a data directory, or the addresses of a cluster’s nodes, separated by commas')
    .requiredOption('--to <place>', 'the other of the two')
    .option('--index <name...>', 'names of the indices, or patterns; by default all')
    .addOption(
      new Option('--cluster-ca <file>', 'PEM file of the authority that signs the cluster’s certificates').env(
        'SPARROW_CLUSTER_CA',
      ),
    )
    .addOption(
      new Option('--cluster-credentials <file>', 'file with user:password or an API key for the cluster').env(
        'SPARROW_CLUSTER_CREDENTIALS',
      ),
    )
    .addOption(integerOption('--shards <n>', 'shards of the new indices; by default as many as the old ones have', 1))
    .addOption(integerOption('--batch <n>', 'documents per request', 1).default(500))
    .addOption(integerOption('--samples <n>', 'documents of each index to compare at the end', 0).default(20))
    .addOption(jsonOption('for each index, in a list, {index, documents, interrupted, left_out, compared}'))
    .action(run);
}

async function run(options: Options): Promise<void> {
  const { out, err } = terminal();
  const { from, to, index = [], shards, batch, samples, json = false } = options;
  if (isAddress(from) === isAddress(to)) {
    throw new UsageError('--from and --to are a data directory and the address of a cluster, in either order');
  }
  if (!isAddress(from) && !existsSync(from)) throw new CommandError(`there is no data directory ${from}`);
  if (batch > 10_000) throw new UsageError('--batch is 10000 at most');
  const { migrate, MigrationError } = await import('@sparrow-search/cluster');
  const progress = progressBeside(json, err, 'document');
  const { signal, done } = interruptible();
  const onProgress: MigrationOptions['onProgress'] = ({ index: name, documents, total }) => {
    progress.update(documents, total === 0 ? 1 : documents / total, name);
  };
  let moved: Migrated[];
  try {
    moved = await withEngines(options, (source, target) =>
      migrate(source, target, { indices: index, shards, batch, samples, signal, onProgress }),
    );
  } catch (error) {
    if (error instanceof MigrationError) throw new CommandError(error.message, { cause: error });
    throw error;
  } finally {
    progress.clear();
    done();
  }
  out.write(json ? `${JSON.stringify(moved)}\n` : moved.map((one) => shown(out, one)).join(''));
  if (moved.some(({ compared }) => (compared?.differences.length ?? 0) > 0)) process.exitCode = 1;
  if (moved.some(({ interrupted }) => interrupted)) process.exitCode = 130;
}

function shown(out: Sink, { index, documents, interrupted, left_out: leftOut, compared }: Migrated): string {
  const lines = [`${index}: ${counted(documents, 'document')}`];
  if (leftOut.length > 0) lines.push(`settings that are left out: ${leftOut.join(', ')}`);
  if (interrupted) lines.push('interrupted: run this again to go on');
  if (compared !== undefined) {
    const { documents: looked, searches, differences } = compared;
    lines.push(
      differences.length === 0
        ? out.good(
            `the same on both sides: the count, ${counted(looked, 'document')}, the answers to ${counted(searches, 'search', 'searches')}`,
          )
        : out.bad(counted(differences.length, 'difference')),
      ...differences.slice(0, MOST_TOLD),
    );
  }
  return `${lines.join('\n  ')}\n`;
}

function isAddress(place: string): boolean {
  return /^https?:\/\//.test(place);
}

/** Opens both sides; the engine over the cluster has an engine of its own, for it makes pipelines its own. */
async function withEngines<T>(
  { from, to, clusterCa: caFile, clusterCredentials: credentialsFile }: Options,
  work: (from: SearchEngine, to: SearchEngine) => Promise<T>,
): Promise<T> {
  const { ClusterSearchEngine } = await import('@sparrow-search/cluster');
  const [addresses, data] = isAddress(from) ? [from, to] : [to, from];
  const spare = await mkdtemp(join(tmpdir(), 'sparrow-migrate-'));
  const open: SearchEngine[] = [];
  try {
    const native = await openNative(data);
    open.push(native);
    const models = await openNative(spare);
    const nodes = addresses.split(',').map((url) => url.trim());
    // The command ends when the cluster cannot be reached, and does not wait for it.
    const controller = new AbortController();
    let reason: string | undefined;
    const log = {
      info: () => undefined,
      warn: (_: string, fields: Record<string, unknown>) => {
        reason ??= typeof fields['error'] === 'string' ? fields['error'] : JSON.stringify(fields['error']);
        controller.abort();
      },
    };
    const settings = { nodes, caFile, credentialsFile, takesTasks: false };
    const cluster = await ClusterSearchEngine.open(models, settings, log, controller.signal).catch(
      async (error: unknown) => {
        await models.close();
        if (reason === undefined) throw error;
        throw new CommandError(`the cluster cannot be used: ${reason}`, { cause: error });
      },
    );
    open.push(cluster);
    return await (isAddress(from) ? work(cluster, native) : work(native, cluster));
  } finally {
    for (const engine of open.reverse()) await engine.close();
    await rm(spare, { recursive: true, force: true });
  }
}

function openNative(data: string): Promise<SearchEngine> {
  const log = { level: 'warn', asText: true } as const;
  return NativeSearchEngine.open({ data, models: embeddedModels(), deployAtStart: false, log });
}
