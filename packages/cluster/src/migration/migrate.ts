import { EngineError, type SearchEngine } from '@sparrow-search/engine';

import { type Json, isObject, textOf, without } from '../json.js';
import { semanticIn } from '../passage-mappings.js';
import { MigrationError, ask } from './asking.js';
import { type Compared, compare } from './comparison.js';
import { type IndexDefinition, bodyLike, checkWhole, endpointsOf } from './definition.js';
import { type Mark, readMark, removeMark, writeMark } from './mark.js';
import { transfer } from './transfer.js';

export { MigrationError } from './asking.js';

export interface MigrationOptions {
  /** Names and patterns of indices; without any, all indices that are open and do not begin with a dot. */
  readonly indices: readonly string[];
  /** Shards of the indices that are made; as many as they have where nothing is said. */
  readonly shards?: number | undefined;
  /** Documents of a request. */
  readonly batch: number;
  /** Documents of each index that are compared at the end. */
  readonly samples: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: MigrationProgress) => void;
}

/** How far the move of an index is. */
export interface MigrationProgress {
  readonly index: string;
  readonly documents: number;
  readonly total: number;
}

/** What became of an index. */
export interface Migrated {
  readonly index: string;
  readonly documents: number;
  /** Whether the move was interrupted: the same again goes on with it. */
  readonly interrupted: boolean;
  /** Settings that mean nothing on the other side. */
  readonly left_out: readonly string[];
  readonly compared?: Compared;
}

/**
 * Moves indices from one engine to another: mappings, settings, aliases, and documents with the vectors in them. Nothing is encoded again,
 * and what an earlier run has written is not written again.
 *
 * @throws {MigrationError} for what cannot be moved, before anything of it is; {EngineError} what either side refuses
 */
export async function migrate(from: SearchEngine, to: SearchEngine, options: MigrationOptions): Promise<Migrated[]> {
  const { indices, signal, samples, batch } = options;
  const definitions = await definitionsOf(from, indices);
  for (const [name, definition] of definitions) checkWhole(name, definition);
  await movePipelines(
    from,
    to,
    definitions.map(([, definition]) => definition),
  );
  await moveEndpoints(from, to, endpointsOf(definitions.map(([, definition]) => definition)));
  const begun: (Begun & { readonly index: string; readonly definition: IndexDefinition })[] = [];
  for (const [index, definition] of definitions) {
    begun.push({ index, definition, ...(await begin(to, index, definition, options.shards)) });
  }
  const moved: Migrated[] = [];
  for (const { index, definition, mark, leftOut } of begun) {
    const path = { index };
    await ask(from, 'refresh', { path });
    const { count: total } = await ask<{ count: number }>(from, 'count', { path });
    const onDocuments = (documents: number): void => {
      options.onProgress({ index, documents, total });
    };
    const hasPassages = Object.keys(semanticIn(definition.mappings)).length > 0;
    const moving = { from, to, index, hasPassages, batch, signal, onDocuments };
    const end = mark.done ? mark : await transfer(moving, mark);
    const result = { index, documents: end.documents, interrupted: !end.done, left_out: leftOut };
    if (!end.done) return [...moved, result];
    await ask(to, 'refresh', { path });
    moved.push({ ...result, compared: await compare(from, to, index, definition.mappings, samples) });
  }
  // Until all are there, a mark says which need not be read again.
  for (const [index] of definitions) await removeMark(to, index);
  return moved;
}

interface Begun {
  readonly mark: Mark;
  readonly leftOut: readonly string[];
}

async function definitionsOf(
  engine: SearchEngine,
  wanted: readonly string[],
): Promise<readonly (readonly [string, IndexDefinition])[]> {
  const index = wanted.length === 0 ? '*' : wanted.join(',');
  const found = await ask<Record<string, IndexDefinition>>(engine, 'get_index', { path: { index } });
  const all = Object.entries(found).filter(([name]) => wanted.length > 0 || !name.startsWith('.'));
  if (all.length === 0)
    throw new MigrationError(`there is no index to move${wanted.length === 0 ? '' : ` by [${index}]`}`);
  return all.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Makes the index on the other side, or finds the one that an earlier run made. */
async function begin(
  to: SearchEngine,
  index: string,
  definition: IndexDefinition,
  shards: number | undefined,
): Promise<Begun> {
  const { body, leftOut } = bodyLike(definition, shards);
  const from = String(definition.settings.index['uuid']);
  try {
    await ask(to, 'create_index', { path: { index }, body });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (!Buffer.from(error.body).includes('resource_already_exists_exception')) {
      throw new MigrationError(`index [${index}] cannot be made there: ${error.reason}; --index names others`, {
        cause: error,
      });
    }
    const mark = await readMark(to, index);
    if (mark === undefined) {
      throw new MigrationError(`index [${index}] is there already: delete it, or name others with --index`);
    }
    if (mark.from !== from) {
      throw new MigrationError(`index [${index}] is there already, begun from another index of that name: delete it`);
    }
    return { mark, leftOut };
  }
  const mark: Mark = { from, documents: 0, after: {}, done: false };
  await writeMark(to, index, mark);
  return { mark, leftOut };
}

/** Moves the pipelines that the indices name and the other side does not have: indices cannot do without them. */
async function movePipelines(
  from: SearchEngine,
  to: SearchEngine,
  definitions: readonly IndexDefinition[],
): Promise<void> {
  const [ours, theirs] = await Promise.all([pipelinesOf(from), pipelinesOf(to)]);
  const wanted = new Set(
    definitions.flatMap(({ settings: { index } }) => [index['default_pipeline'], index['final_pipeline']]),
  );
  for (const [pipeline, definition] of Object.entries(ours)) {
    if (!wanted.has(pipeline) || pipeline in theirs || !isObject(definition)) continue;
    await ask(to, 'put_pipeline', { path: { pipeline }, body: definition }).catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error;
      throw new MigrationError(`pipeline [${pipeline}] cannot be made there: ${error.reason}`, { cause: error });
    });
  }
}

/** Moves the inference endpoints that fields name and the other side does not have. */
async function moveEndpoints(from: SearchEngine, to: SearchEngine, wanted: ReadonlySet<string>): Promise<void> {
  if (wanted.size === 0) return;
  const [ours, theirs] = await Promise.all([inferenceOf(from), inferenceOf(to)]);
  for (const id of wanted) {
    const endpoint = ours.get(id);
    if (theirs.has(id) || endpoint === undefined) continue;
    const path = { task_type: textOf(endpoint['task_type']) ?? '', inference_id: id };
    const body = without(endpoint, 'task_type', 'inference_id');
    await ask(to, 'put_inference', { path, body }).catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error;
      const instead = 'make it first, by a server that has its model';
      throw new MigrationError(`inference endpoint [${id}] cannot be made there: ${error.reason}: ${instead}`, {
        cause: error,
      });
    });
  }
}

async function inferenceOf(engine: SearchEngine): Promise<ReadonlyMap<string, Json>> {
  const { endpoints } = await ask<{ endpoints: Json[] }>(engine, 'get_inference');
  return new Map(endpoints.map((endpoint) => [String(endpoint['inference_id']), endpoint]));
}

async function pipelinesOf(engine: SearchEngine): Promise<Json> {
  try {
    return await ask<Json>(engine, 'get_pipeline');
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return {};
    throw error;
  }
}
