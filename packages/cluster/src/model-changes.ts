import { type Cancel, EngineError, type EngineReply, type EngineRequest } from '@sparrow-search/engine';

import { type CopyPlan, type Copying, type Progress, copy, countOf, shardsOf } from './copy.js';
import { illegal, refusal } from './errors.js';
import { type Json, decode, isObject, parseAnswer, parseRequest } from './json.js';
import { nestedQuery } from './knn.js';
import { fromCluster, ownMeta } from './mappings.js';
import { encodeExpression, isPattern } from './names.js';
import { passagesOf, put, slotsOf, sourceAsPut } from './passage-mappings.js';
import { paceOf } from './reindex.js';
import { passedOn } from './replies.js';
import { search } from './search.js';
import { type SemanticIndex, type Wider, askNative, semanticIndex } from './semantic-fields.js';
import type { ChangeOutcome, Failure } from './task-record.js';
import type { Working } from './tasks.js';

/** Most documents that are read, encoded and written together, as natively. */
const CHUNK = 128;

/** Documents that queries are made of at once: each of them may be long, and an answer has a largest size. */
const PAGE = 20;

/** The change of a model as the native engine describes it; what it does not say is the native engine's business. */
interface Change extends Json {
  readonly field: string;
  readonly state: 'filling' | 'ready' | 'switched';
  readonly compare: unknown;
}

/** An index as the cluster has it. */
interface Known {
  readonly index: string;
  readonly semantic: SemanticIndex;
  /** The mapping as users put it, without what Sparrow adds to it in the cluster. */
  readonly shown: Json;
  /** The fingerprints of the models that filled fields by pipelines. */
  readonly ofPipelines: readonly (readonly [string, string])[];
  readonly change: Change | null;
}

/** A step as the native engine reads it. */
type Step = string | Json;

type Next = Wider & { readonly change: Change | null };

/** The task that fills the second vectors of an index. */
export interface Filling {
  readonly task: string;
  readonly total: number;
  readonly filled: number;
}

function knownOf(index: string, mapping: unknown): Known {
  const { models, change } = ownMeta(mapping);
  const shown = fromCluster(mapping);
  const fingerprints = Object.entries(isObject(models) ? models : {}).flatMap(([path, it]) =>
    isObject(it) ? [[path, String(it['fingerprint'])] as const] : [],
  );
  return {
    index,
    semantic: semanticIndex(index, mapping),
    shown: isObject(shown) ? shown : {},
    ofPipelines: fingerprints,
    change: isObject(change) ? (change as Change) : null,
  };
}

/** @throws {EngineError} 400 for a name that may stand for several indices, 404 for one that stands for none */
async function known({ transport }: Working, name: string): Promise<Known> {
  const severally = (): Error => illegal(`models are changed one index at a time, but [${name}] may stand for several`);
  if (isPattern(name) || name.includes(',')) throw severally();
  const answered = await transport.ask({ method: 'GET', path: `/${encodeURIComponent(name)}/_mapping` });
  if (answered.status !== 200) throw passedOn(answered);
  const [only, second] = Object.entries(parseAnswer(answered.body) as Json);
  if (only === undefined || second !== undefined) throw severally();
  return knownOf(only[0], isObject(only[1]) ? only[1]['mappings'] : undefined);
}

/**
 * Lets the native engine take a step.
 *
 * @param fields of other types that the step is about
 */
async function asked(
  { native }: Working,
  { index, semantic, shown, change }: Known,
  step: Step,
  fields: readonly string[] = [],
  cancel?: Cancel,
): Promise<unknown> {
  const mapping = structuredClone(semantic.mapping) as { properties: Record<string, unknown> };
  for (const path of fields) {
    const type = typeAt(shown, path);
    if (type !== undefined && !Object.hasOwn(semantic.fields, path)) put(mapping.properties, path, { type });
  }
  const source = sourceAsPut(shown['_source']);
  const told = source === undefined ? mapping : { ...mapping, _source: source };
  const body = { index, mapping: told, state: semantic.state, change, step };
  return JSON.parse(await askNative(native, 'step_model_change', body, cancel));
}

function typeAt(mapping: Json, path: string): unknown {
  const definition = path
    .split('.')
    .reduce<unknown>(
      (above, name) => (isObject(above) && isObject(above['properties']) ? above['properties'][name] : undefined),
      mapping,
    );
  return isObject(definition) ? definition['type'] : undefined;
}

/** Takes a step and keeps what follows from it. Only a caller that has the turn of the index does so. */
async function taken(
  work: Working,
  index: string,
  step: Step,
  fields?: readonly string[],
  cancel?: Cancel,
): Promise<Next> {
  const now = await known(work, index);
  const next = (await asked(work, now, step, fields, cancel)) as Next;
  await work.semantic.settle(now.semantic, next);
  return next;
}

/** The steps that a request takes by itself. */
const STEPS: Readonly<Partial<Record<EngineRequest['op'], string>>> = {
  switch_model: 'switch',
  roll_back_model: 'roll_back',
  drop_model: 'drop',
};

/** Answers what switches searches to the other vectors, and what drops those that they do not read. */
export async function stepModel(
  work: Working,
  request: EngineRequest,
  filling: (index: string) => Promise<Filling | undefined>,
): Promise<EngineReply> {
  const { index: name = '' } = request.path;
  await work.names.check(request, [name]);
  const { index, change } = await known(work, name);
  const step = STEPS[request.op] ?? '';
  const next = await work.semantic.turns.alone(index, async () => {
    const task = step === 'drop' ? await filling(index) : undefined;
    if (task !== undefined)
      throw conflict(`${beingChanged(index, task)}; cancel the task, and the new vectors are dropped`);
    return taken(work, index, step);
  });
  // Searches of the other servers have to read the vectors that stay, before the others are dropped.
  if (step !== 'drop') await work.semantic.untilKnown();
  const body = { acknowledged: true, field: change?.field, state: next.change?.state ?? 'dropped' };
  return { status: 200, body: Buffer.from(JSON.stringify(body)) };
}

/** Answers `GET /{index}/_ext/model`. */
export async function fieldModels(
  work: Working,
  request: EngineRequest,
  filling: (index: string) => Promise<Filling | undefined>,
): Promise<EngineReply> {
  const expression = await work.names.expression(request, request.path['index']);
  const found: Record<string, unknown> = {};
  if (expression !== undefined) {
    const path = `/${encodeExpression(expression)}/_mapping`;
    const answered = await work.transport.ask({ method: 'GET', path, query: request.query, repeatable: true });
    if (answered.status !== 200) throw passedOn(answered);
    for (const [index, it] of Object.entries(parseAnswer(answered.body) as Json)) {
      const one = knownOf(index, isObject(it) ? it['mappings'] : undefined);
      const step = { show: { filling: (await filling(index)) ?? null, of_pipelines: one.ofPipelines } };
      const paths = one.ofPipelines.map(([field]) => field);
      found[index] = await asked(work, one, step, paths);
    }
  }
  return { status: 200, body: Buffer.from(JSON.stringify(found)) };
}

/**
 * Begins a change: from now on, every document that is written gets the vectors of both models.
 *
 * @param keep sets the work that is left down, to give them to the documents that are there, so that no other server begins it as well
 * @returns what that gives
 */
export async function beginChange<T>(
  work: Working,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
  filling: (index: string) => Promise<Filling | undefined>,
  keep: (plan: CopyPlan, description: string) => Promise<T>,
  cancel?: Cancel,
): Promise<T> {
  const { index: name = '' } = request.path;
  await work.names.check(request, [name]);
  const body = parseRequest(bytes === undefined ? '{}' : decode(bytes));
  const pace = paceOf(request.query['requests_per_second']);
  const { index } = await known(work, name);
  const field = isObject(body) && typeof body['field'] === 'string' ? [body['field']] : [];
  const begin = { request: body, requests_per_second: pace === 0 ? null : pace };
  return work.semantic.turns.alone(index, async () => {
    const task = await filling(index);
    if (task !== undefined) throw conflict(beingChanged(index, task));
    const next = await taken(work, index, { begin }, field, cancel);
    const { plan, description } = planOf(index, next, pace);
    return keep(plan, description);
  });
}

/** What a change that has begun leaves to be done. */
function planOf(index: string, next: Next, pace: number): { readonly plan: CopyPlan; readonly description: string } {
  const path = next.change?.field ?? '';
  const [searched, beside] = slotsOf(path, {}, next.state);
  if (beside === undefined) throw new Error('the second set of vectors is gone');
  const has = ({ name: slot }: typeof searched): object =>
    JSON.parse(nestedQuery(passagesOf(slot), '{"match_all":{}}')) as object;
  const to = String(beside.definition['inference_id']);
  return {
    description: `change of the model of [${index}][${path}] to [${to}]`,
    plan: {
      source: index,
      dest: index,
      query: { bool: { filter: [has(searched)], must_not: [has(beside)] } },
      sourceFilter: undefined,
      batch: pace === 0 ? CHUNK : Math.max(1, Math.min(Math.floor(pace), CHUNK)),
      inPlace: true,
      creates: false,
      proceeds: true,
      maxDocs: Number.MAX_SAFE_INTEGER,
      perSecond: pace,
      refreshes: true,
      change: path,
    },
  };
}

/**
 * Encodes the documents that have no vectors of the new model, until every document has them. Those that are written meanwhile get the
 * vectors of both models when they are written.
 *
 * @param setDown as of {@link copy}
 * @throws {EngineError} 409 where documents lack vectors and the change has been ended or gone on with by others
 */
export async function fill(
  work: Working,
  context: Copying,
  plan: CopyPlan,
  begun: Progress,
  setDown: (progress: Progress) => Promise<boolean>,
): Promise<Progress> {
  const { transport } = context;
  const path = `/${encodeExpression(plan.source)}/_refresh`;
  // Until then, another server may write documents that lack them.
  await context.semantic.untilKnown();
  for (let progress = begun; ;) {
    await transport.ask({ method: 'POST', path, repeatable: true });
    const left = await countOf(transport, plan);
    const { updated, version_conflicts: conflicts } = progress.tally;
    const shards = await shardsOf(transport, plan.source);
    progress = { ...progress, shards, tally: { ...progress.tally, total: updated + left } };
    if (left === 0) return progress;
    // Documents are made as the index is now: without a second place for vectors, all of them would be written again in vain.
    const change = await changeOf(work, plan);
    if (change?.state !== 'filling')
      throw conflict(`the change of the model of field [${plan.change ?? ''}] is [${change?.state ?? 'dropped'}]`);
    progress = await copy(context, plan, progress, setDown);
    if (progress.failures.length > 0 || !progress.shards.every(({ done }) => done === true)) return progress;
    if (progress.tally.updated === updated && progress.tally.version_conflicts === conflicts) {
      throw new Error('documents lack vectors and nothing kept them from being written');
    }
  }
}

/**
 * Compares what both models find, and lets searches read the new vectors if that was asked for.
 *
 * @param goesOn throws where the task is to end
 * @throws {EngineError} why a document could not be given vectors
 */
export async function concluded(
  work: Working,
  plan: CopyPlan,
  { failures: [failed] }: Progress,
  goesOn: () => void,
): Promise<ChangeOutcome> {
  const { source: index, change: field = '' } = plan;
  if (failed !== undefined) {
    work.log.warn('a document cannot be given vectors of a new model', { ...failed });
    const { type } = failed.cause as { readonly type?: unknown };
    const reason = `a document cannot be given vectors of the new model of field [${field}]: ${told(failed)}`;
    throw refusal(failed.status, String(type), reason);
  }
  let change = await changeOf(work, plan);
  // The server that did the work may have ended when all was done but for saying so.
  if (change?.state === 'filling') {
    const lists = await listsOfBoth(work, index, goesOn);
    try {
      ({ change } = await work.semantic.turns.alone(index, () => taken(work, index, { fill: { lists } })));
    } catch (error) {
      if (!(error instanceof EngineError) || ![404, 409].includes(error.status)) throw error;
      // Another server has gone on with it meanwhile.
      change = await changeOf(work, plan);
      if (change?.state === 'filling') throw error;
    }
  }
  if (change?.state === 'switched') await work.semantic.untilKnown();
  return { field, state: change?.state ?? 'dropped', compared: change?.['compared'] };
}

/** Ends a change whose task was cancelled: the new vectors are dropped, unless all documents had them before. */
export async function cancelled(work: Working, plan: CopyPlan): Promise<ChangeOutcome> {
  const { source: index, change: field = '' } = plan;
  return work.semantic.turns.alone(index, async () => {
    const change = await changeOf(work, plan);
    if (change?.state === 'filling') await taken(work, index, 'drop');
    // The server that dropped them may have ended before it said so.
    const isOver = change === null || change.state === 'filling';
    return isOver ? { field, state: 'cancelled' } : { field, state: change.state, compared: change['compared'] };
  });
}

/** Notes why the task of a change stopped; the same request goes on with it. */
export async function stopped(work: Working, plan: CopyPlan, failure: string): Promise<void> {
  const { source: index } = plan;
  await work.semantic.turns.alone(index, async () => {
    const change = await changeOf(work, plan);
    if (change?.state === 'filling') await taken(work, index, { stop: { failure } });
  });
}

/** The change that a task carries out; null where it is over. */
async function changeOf(work: Working, { source: index, change: field }: CopyPlan): Promise<Change | null> {
  const { change } = await known(work, index);
  return change?.field === field ? change : null;
}

/** Types of errors whose reasons say nothing of what a document holds. */
const OF_NO_DOCUMENT: ReadonlySet<string> = new Set([
  ...['cluster_block_exception', 'index_closed_exception', 'index_not_found_exception', 'unavailable_shards_exception'],
  ...['circuit_breaking_exception', 'es_rejected_execution_exception', 'task_cancelled_exception'],
  ...['resource_not_found_exception', 'status_exception'],
]);

/** Why a document could not be written, without quoting it: a caller that may change models need not be allowed to read documents. */
export function told({ id, cause }: Failure): string {
  const { type, reason } = cause as { readonly type?: unknown; readonly reason?: unknown };
  const isPrivate = !OF_NO_DOCUMENT.has(String(type)) || String(reason).includes(`[${String(id)}]`);
  return isPrivate ? `${String(type)}, the log of the server says more` : String(reason);
}

/** What both models find for the same queries: the ids of the first hits. */
async function listsOfBoth(
  work: Working,
  index: string,
  goesOn: () => void,
): Promise<readonly (readonly [string, readonly string[], readonly string[]])[]> {
  const now = await known(work, index);
  const { change } = now;
  // Another server has gone on with it.
  if (change === null) return [];
  const compare = isObject(change.compare) ? change.compare : {};
  const { sample = 0, size = 10 } = compare;
  const queries: string[] = [];
  const wanted = 'queries' in compare ? 1 : Number(sample);
  for (let from = 0; from < wanted; from += PAGE) {
    goesOn();
    const documents = 'queries' in compare ? [] : await someDocuments(work, index, from, Math.min(PAGE, wanted - from));
    const made = (await asked(work, now, { queries: { documents } })) as { readonly queries: readonly string[] };
    queries.push(...made.queries);
  }
  if (queries.length === 0) return [];
  const exchanged = (await asked(work, { ...now, change: { ...change, state: 'ready' } }, 'switch')) as Next;
  const other: SemanticIndex = {
    index,
    mapping: exchanged.mapping,
    state: exchanged.state,
    fields: {
      ...now.semantic.fields,
      [change.field]: semanticIndex(index, exchanged.mapping).fields[change.field] ?? {},
    },
  };
  const lists: [string, readonly string[], readonly string[]][] = [];
  for (const query of queries) {
    goesOn();
    const found: (readonly string[])[] = [];
    for (const semantic of [now.semantic, other]) {
      const body = {
        size,
        query: { semantic: { field: change.field, query } },
        _source: false,
        track_total_hits: false,
      };
      try {
        found.push(ids(await answer({ ...work, semantic: work.semantic.as(semantic) }, index, body)));
      } catch (error) {
        // Where nothing makes queries for the old vectors any more, there is nothing to compare with.
        if (semantic === now.semantic && hasNoModel(error)) return [];
        throw error;
      }
    }
    lists.push([query, found[0] ?? [], found[1] ?? []]);
  }
  return lists;
}

/** Whether the native engine refused a query as it would be made by another model than the vectors that it is for, or by none. */
function hasNoModel(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  const body = Buffer.from(error.body);
  if (error.status === 404) return body.includes('resource_not_found_exception');
  return error.status === 400 && body.includes('holds the output of model');
}

/** Some documents of an index, the same each time. */
async function someDocuments(work: Working, index: string, from: number, size: number): Promise<readonly unknown[]> {
  const random = { random_score: { seed: 1, field: '_seq_no' } };
  const { hits } = await answer(work, index, { from, size, query: { function_score: { ...random } } });
  return hits.hits.map(({ _source: source }) => source);
}

interface Found {
  readonly hits: { readonly hits: readonly { readonly _id: string; readonly _source?: unknown }[] };
}

async function answer(work: Working, index: string, body: object): Promise<Found> {
  const request: EngineRequest = { op: 'search', path: { index }, query: {} };
  const reply = await search(work, request, Buffer.from(JSON.stringify(body)));
  if (reply.status !== 200) throw passedOn({ status: reply.status, body: Buffer.from(reply.body) });
  return JSON.parse(Buffer.from(reply.body).toString()) as Found;
}

function ids({ hits }: Found): readonly string[] {
  return hits.hits.map(({ _id: id }) => id);
}

function beingChanged(index: string, { task }: Filling): string {
  return `a model of index [${index}] is being changed by task [${task}]`;
}

function conflict(reason: string): Error {
  return refusal(409, 'status_exception', reason);
}
