import type { Cancel, EngineReply, EngineRequest } from '@sparrow-search/engine';

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
  /** Its mapping as it was put. */
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
    if (type !== undefined && !(path in semantic.fields)) put(mapping.properties, path, { type });
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

/** Takes a step and keeps what follows from it, while no other server takes one. */
async function taken(
  work: Working,
  index: string,
  step: Step,
  fields?: readonly string[],
  cancel?: Cancel,
): Promise<Next> {
  return work.semantic.turns.alone(index, async () => {
    const now = await known(work, index);
    const next = (await asked(work, now, step, fields, cancel)) as Next;
    await work.semantic.settle(now.semantic, next);
    return next;
  });
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
  const task = await filling(index);
  if (step === 'drop' && task !== undefined) {
    throw conflict(`${beingChanged(index, task)}; cancel the task, and the new vectors are dropped`);
  }
  const next = await taken(work, index, step);
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
 * @returns the work that is left: to give them to the documents that are there
 */
export async function beginChange(
  work: Working,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
  filling: (index: string) => Promise<Filling | undefined>,
  cancel?: Cancel,
): Promise<{ readonly plan: CopyPlan; readonly description: string }> {
  const { index: name = '' } = request.path;
  await work.names.check(request, [name]);
  const body = parseRequest(bytes === undefined ? '{}' : decode(bytes));
  const pace = paceOf(request.query['requests_per_second']);
  const { index } = await known(work, name);
  const task = await filling(index);
  if (task !== undefined) throw conflict(beingChanged(index, task));
  const field = isObject(body) && typeof body['field'] === 'string' ? [body['field']] : [];
  const begin = { request: body, requests_per_second: pace === 0 ? null : pace };
  const next = await taken(work, index, { begin }, field, cancel);
  const path = next.change?.field ?? '';
  const definition = (await known(work, index)).semantic.fields[path] ?? {};
  const [searched, beside] = slotsOf(path, definition, next.state);
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
 * Gives the second vectors to the documents that lack them until there are none. Documents that are written meanwhile get them anyway.
 *
 * @param setDown as of {@link copy}
 */
export async function fill(
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
  { source: index, change: field = '' }: CopyPlan,
  { failures: [failed] }: Progress,
  goesOn: () => void,
): Promise<ChangeOutcome> {
  if (failed !== undefined) {
    work.log.warn('a document cannot be given vectors of a new model', { ...failed });
    const { type } = failed.cause as { readonly type?: unknown };
    const reason = `a document cannot be given vectors of the new model of field [${field}]: ${told(failed)}`;
    throw refusal(failed.status, String(type), reason);
  }
  const before = (await known(work, index)).change;
  // The server that did the work may have ended when all was done but for saying so.
  const isLeft = before === null || before.state === 'filling';
  const next = isLeft
    ? await taken(work, index, { fill: { lists: await listsOfBoth(work, index, goesOn) } })
    : undefined;
  const change = next === undefined ? before : next.change;
  if (change?.state === 'switched') await work.semantic.untilKnown();
  return { field, state: change?.state ?? 'dropped', compared: change?.['compared'] };
}

/** Ends a change whose task was cancelled: the new vectors are dropped. */
export async function cancelled(
  work: Working,
  { source: index, change: field = '' }: CopyPlan,
): Promise<ChangeOutcome> {
  await taken(work, index, 'drop');
  return { field, state: 'cancelled' };
}

/** Notes why the task of a change stopped; the same request goes on with it. */
export async function stopped(work: Working, { source: index }: CopyPlan, failure: string): Promise<void> {
  await taken(work, index, { stop: { failure } });
}

/** Why a document could not be written, without what it holds: whoever changes models may not be allowed to read it. */
function told({ id, cause }: Failure): string {
  const { type, reason } = cause as { readonly type?: unknown; readonly reason?: unknown };
  const isPrivate = String(type).startsWith('document_') || String(reason).includes(`[${String(id)}]`);
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
  if (change === null)
    throw refusal(404, 'resource_not_found_exception', `no model of index [${index}] is being changed`);
  const compare = isObject(change.compare) ? change.compare : {};
  const { sample = 0, size = 10 } = compare;
  const documents = 'queries' in compare ? [] : await someDocuments(work, index, Number(sample));
  const { queries } = (await asked(work, now, { queries: { documents } })) as { readonly queries: readonly string[] };
  if (queries.length === 0) return [];
  const exchanged = (await asked(work, { ...now, change: { ...change, state: 'ready' } }, 'switch')) as Next;
  const other: SemanticIndex = {
    index,
    mapping: exchanged.mapping,
    state: exchanged.state,
    fields: { ...now.semantic.fields, [change.field]: definitionIn(exchanged.mapping, change.field) },
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
      found.push(ids(await answer({ ...work, semantic: work.semantic.as(semantic) }, index, body)));
    }
    lists.push([query, found[0] ?? [], found[1] ?? []]);
  }
  return lists;
}

function definitionIn(mapping: Json, path: string): Json {
  const found = Object.entries(semanticIndex('', mapping).fields).find(([name]) => name === path);
  return found?.[1] ?? {};
}

/** Some documents of an index, the same each time. */
async function someDocuments(work: Working, index: string, size: number): Promise<readonly unknown[]> {
  if (size === 0) return [];
  const random = { random_score: { seed: 1, field: '_seq_no' } };
  const { hits } = await answer(work, index, { size, query: { function_score: { ...random } } });
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
