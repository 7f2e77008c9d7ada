import type { Cancel, EngineReply, EngineRequest } from '@sparrow-search/engine';

import { BulkBody, type BulkItem, itemNow, itemsIn } from './bulk-body.js';
import type { DynamicFields } from './dynamic-fields.js';
import { type Cause, illegal, refusal } from './errors.js';
import type { FieldModels } from './field-models.js';
import type { FinalPipelines } from './final-pipelines.js';
import {
  asBuffer,
  checkUtf8,
  decode,
  isJson,
  isObject,
  isSet,
  members,
  parse,
  rawOf,
  whole,
  malformedAnswer,
  oneLine,
  withoutMark,
} from './json.js';
import { type Asker, type Names, encodeExpression } from './names.js';
import { type Given, type Outcome, type Pipelines, failureOf, noteModels } from './pipelines.js';
import { refuseUnknown, replyOf, stoppable } from './replies.js';
import { bulkPassages, sentPassages } from './semantic-documents.js';
import type { SemanticFields } from './semantic-fields.js';
import { complete, inOrder, placesIn, updateDocument } from './semantic-updates.js';
import type { Transport } from './transport.js';
import { type Upsert, upsertOf } from './upserts.js';
import { writeIndexOf } from './write-index.js';
import { type VectorFields, bulkVectors, sentVectors } from './vector-documents.js';

/** What writes need of their surroundings. */
export interface Writing {
  readonly transport: Transport;
  readonly names: Names;
  readonly pipelines: Pipelines;
  readonly models: FieldModels;
  readonly vectors: VectorFields;
  readonly semantic: SemanticFields;
  readonly finals: FinalPipelines;
  readonly dynamic: DynamicFields;
}

/** The value by which a request says that no pipeline runs. */
const NONE = '_none';

const WRITE_ACTIONS = {
  index: 'indices:data/write/index:op_type/index',
  create: 'indices:data/write/index:op_type/create',
  update: 'indices:data/write/update',
  delete: 'indices:data/write/delete',
} as const;

/** Answers `PUT|POST _doc` and `_create`. */
export async function writeDocument(
  context: Writing,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const { index = '', id } = request.path;
  const creates = request.op === 'create_doc' || request.query['op_type'] === 'create' || id === undefined;
  await checkWrite(context, request, index, creates ? 'create' : 'index');
  const pipeline = await pipelineOf(context, request.query['pipeline'], index);
  const query: Readonly<Record<string, string>> = { ...request.query, pipeline: NONE };
  if (body === undefined || (pipeline === undefined && (await context.finals.of(index)) === undefined)) {
    return sendWhole(context, request, index, id, query, body);
  }
  await context.pipelines.sync();
  const source = decode(body);
  if (!isObject(parse(source))) throw illegal('a document has to be an object');
  const given = { index, id, routing: query['routing'], source };
  const first = pipeline === undefined ? given : await through(context, pipeline, given);
  // A pipeline may have sent the document to another index, whose final pipeline then counts, if the caller may write there.
  if (first !== undefined && first.index !== index) {
    await checkWrite(context, request, first.index, creates ? 'create' : 'index');
  }
  const last = first === undefined ? undefined : await context.finals.of(first.index);
  const made = first === undefined || last === undefined ? first : await through(context, last, first);
  if (made === undefined) return dropped(index, id);
  if (made.index !== index && made.index !== first?.index) {
    await checkWrite(context, request, made.index, creates ? 'create' : 'index');
  }
  const routed = made.routing === undefined ? query : { ...query, routing: made.routing };
  const reply = await sendWhole(context, request, made.index, made.id, routed, Buffer.from(made.source));
  for (const ran of [pipeline, last])
    if (ran !== undefined && reply.status < 300) await noteModels(context, ran, [made.index]);
  return reply;
}

/** What a pipeline makes of a document; undefined where it drops it. */
async function through({ pipelines }: Writing, pipeline: string, document: Given): Promise<Given | undefined> {
  const [made] = await pipelines.run(pipeline, [document]);
  if (made?.kind === 'failed') {
    const cause = JSON.parse(made.error) as { type: string; reason: string; caused_by?: unknown };
    throw refusal(made.status, cause.type, cause.reason, cause.caused_by);
  }
  return made?.kind === 'document' ? made : undefined;
}

/** Sends a document with its vectors and passages. */
async function sendWhole(
  context: Writing,
  request: EngineRequest,
  index: string,
  id: string | undefined,
  query: Readonly<Record<string, string>>,
  document: Uint8Array | undefined,
): Promise<EngineReply> {
  const since = performance.now();
  const { vectors, semantic, dynamic } = context;
  if (document !== undefined) await dynamic.prepare(index, () => [decode(document)], isSet(query['require_alias']));
  const { body, made } = await sentPassages(semantic, index, await sentVectors(vectors, index, document));
  const reply = await send(context, request, index, id, query, body);
  if (made.length > 0 && reply.status < 300) {
    const { _index: of, _id: written } = JSON.parse(Buffer.from(reply.body).toString()) as Record<string, string>;
    await complete(context, made, since, [{ index: of ?? index, id: written ?? '', routing: query['routing'] }]);
  }
  return reply;
}

/** Answers `DELETE _doc` and `POST _update`: no pipeline runs before either. */
export async function changeDocument(
  context: Writing,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const { index = '', id = '' } = request.path;
  const isUpdate = request.op === 'update_doc';
  await checkWrite(context, request, index, isUpdate ? 'update' : 'delete');
  const upsert = isUpdate && body !== undefined ? upsertOf(decode(body)) : undefined;
  const pipeline = upsert === undefined ? undefined : await pipelineOf(context, undefined, index);
  const last = upsert === undefined ? undefined : await context.finals.of(index);
  if (body !== undefined && (pipeline ?? last) !== undefined)
    return updateThrough(context, request, body, pipeline ?? NONE);
  if (isUpdate && body !== undefined) {
    const onlyAlias = isSet(request.query['require_alias']);
    await context.dynamic.prepare(index, () => documentsOf(decode(body)), onlyAlias);
  }
  const known = isUpdate ? await context.semantic.writtenTo(index) : undefined;
  if (known !== undefined && body !== undefined) {
    const sent = (await sentVectors(context.vectors, index, body, 'update')) ?? body;
    return asNative(await updateDocument(context, request, known, sent));
  }
  return asNative(
    replyOf(
      await context.transport.ask({
        method: isUpdate ? 'POST' : 'DELETE',
        path: `/${encodeURIComponent(index)}/${isUpdate ? '_update' : '_doc'}/${encodeURIComponent(id)}`,
        query: request.query,
        body: isUpdate ? await sentVectors(context.vectors, index, body, 'update') : body,
      }),
    ),
  );
}

/** Parameters of an update that stand at its item in a bulk request, and those of the request itself. */
const OF_ITEM = ['routing', 'retry_on_conflict', 'if_seq_no', 'if_primary_term', '_source', 'require_alias'];
/** Those of them that are numbers; a value for routing is a text, whatever its letters. */
const NUMBERS: ReadonlySet<string> = new Set(['retry_on_conflict', 'if_seq_no', 'if_primary_term']);
const OF_REQUEST = ['refresh', 'timeout', 'wait_for_active_shards'];

/** An update whose document goes through a pipeline: as a bulk request, in which the cluster can be told that none of its own runs. */
async function updateThrough(
  context: Writing,
  request: EngineRequest,
  document: Uint8Array,
  pipeline: string,
): Promise<EngineReply> {
  const { index = '', id = '' } = request.path;
  const parametersOf = (names: readonly string[]): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(request.query).filter(([name]) => names.includes(name)));
  const given = Object.entries(parametersOf(OF_ITEM)).map(([name, value]) => [
    name,
    NUMBERS.has(name) && /^\d+$/.test(value) ? Number(value) : value,
  ]);
  const action = JSON.stringify({ update: { _index: index, _id: id, ...(Object.fromEntries(given) as object) } });
  const body = Buffer.from(`${action}\n${oneLine(decode(document))}\n`);
  const asked = { ...request, op: 'bulk', path: {}, query: { ...parametersOf(OF_REQUEST), pipeline } } as const;
  const reply = await bulk(context, asked, body);
  if (reply.status !== 200) return reply;
  const [item = '{}'] = itemsIn(Buffer.from(reply.body).toString());
  const { status, error, ...rest } = (JSON.parse(item) as { update: { status: number; error?: Cause } }).update;
  if (error !== undefined) throw refusal(status, error.type, error.reason);
  return asNative({ status, body: Buffer.from(JSON.stringify(rest)) });
}

/** Answers `_bulk`: documents go through their pipelines here, and reach the cluster in one request. */
export async function bulk(
  context: Writing,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
  cancel?: Cancel,
): Promise<EngineReply> {
  return stoppable(cancel, async (signal) => {
    const begun = performance.now();
    const asked = asBuffer(bytes ?? new Uint8Array(0));
    checkUtf8(asked);
    const defaults = askedAhead(context, request);
    const body = new BulkBody(withoutMark(asked), request.path['index']);
    const own = new Map<number, string>();
    await refuseItems(context, request, body.items, own);
    const pipelines = await pipelinesOf(context, request, body.items, defaults);
    if (pipelines.size > 0) await context.pipelines.sync();
    const changed = new Map<number, string>();
    const refuseElsewhere = (): Promise<void> => refuseMoved(context, request, body, changed, own);
    const upserts = new Map<number, Upsert>();
    await throughPipelines(context, body, pipelines, { changed, own, upserts }, cancel);
    if (changed.size > 0) await refuseElsewhere();
    const finals = await finalsOf(context, body, changed, own);
    if (finals.size > 0) {
      if (pipelines.size === 0) await context.pipelines.sync();
      await throughPipelines(context, body, finals, { changed, own, upserts }, cancel);
      await refuseElsewhere();
    }
    await prepareAll(context, body, changed, own);
    await bulkVectors(context.vectors, body.items, changed, own);
    const since = performance.now();
    const { updates, made } = await bulkPassages(context.semantic, body.items, changed, own, cancel);
    const query: Record<string, string> = { ...request.query, pipeline: NONE };
    Reflect.deleteProperty(query, 'list_executed_pipelines');
    const path = request.path['index'] === undefined ? '/_bulk' : `/${encodeURIComponent(request.path['index'])}/_bulk`;
    if (updates.size > 0) {
      await inOrder(context, { path, query, items: body.items, changed, own, updates }, signal, cancel);
      await noteAll(context, body, [pipelines, finals], changed);
      const all = body.items.filter((item) => item.kind !== 'delete' && !updates.has(item.position));
      const answers = all.map(({ position }) => own.get(position) ?? '{}');
      await complete(
        context,
        made,
        since,
        placesIn(
          answers,
          all.map(({ routing }) => routing),
        ),
      );
    }
    const isWhole = own.size === 0 && changed.size === 0 && !body.items.some(({ pipeline }) => pipeline !== undefined);
    if (isWhole) {
      const answered = await context.transport.ask({ method: 'POST', path, query, body: bytes, ndjson: true, signal });
      return asNative(replyOf(answered));
    }
    const left = body.items.filter(({ position }) => !own.has(position));
    let items: readonly string[] = [];
    let errors = [...own.values()].some((item) => item.includes('"error":'));
    if (left.length > 0) {
      const sent = left.map((item) => changed.get(item.position) ?? item.written()).join('');
      const answered = await context.transport.ask({ method: 'POST', path, query, body: sent, ndjson: true, signal });
      if (answered.status !== 200) return replyOf(answered);
      await noteAll(context, body, [pipelines, finals], changed);
      const text = answered.body.toString();
      const parts = members(text, whole(text).start);
      items = itemsIn(text);
      // A write that the cluster answered nothing about cannot be acknowledged.
      if (items.length !== left.length) throw malformedAnswer();
      if (made.length > 0)
        await complete(
          context,
          made,
          since,
          placesIn(
            items,
            left.map(({ routing }) => routing),
          ),
        );
      errors ||= parts.some((part) => part.name === 'errors' && rawOf(text, part) === 'true');
    }
    let next = 0;
    const all = body.items.map(({ position }) => own.get(position) ?? items[next++] ?? '{}');
    const took = Math.round(performance.now() - begun);
    return asNative({
      status: 200,
      body: Buffer.from(`{"took":${String(took)},"errors":${String(errors)},"items":[${all.join(',')}]}`),
    });
  });
}

/** The documents in the body of an update. */
function documentsOf(body: string): readonly string[] {
  if (!isJson(body)) return [];
  return members(body, whole(body).start).flatMap((it) =>
    it.name === 'doc' || it.name === 'upsert' ? [rawOf(body, it)] : [],
  );
}

/** Puts the fields into mappings that the documents of a bulk request bring; where one cannot be, they are refused. */
async function prepareAll(
  { dynamic }: Writing,
  { items }: BulkBody,
  changed: ReadonlyMap<number, string>,
  own: Map<number, string>,
): Promise<void> {
  const groups = new Map<string, BulkItem[]>();
  for (const item of items) {
    if (item.kind === 'delete' || own.has(item.position)) continue;
    const now = itemNow(item, changed);
    const group = groups.get(now.index);
    if (group === undefined) groups.set(now.index, [now]);
    else group.push(now);
  }
  const written = ({ kind, source }: BulkItem): readonly string[] =>
    kind === 'update' ? documentsOf(source) : [source];
  for (const [index, group] of groups) {
    try {
      await dynamic.prepare(index, () => group.flatMap(written));
    } catch (error) {
      for (const item of group) own.set(item.position, item.failed(failureOf(error)));
    }
  }
}

/** Writes down which models filled fields of the indices that changed documents went to. */
async function noteAll(
  context: Writing,
  body: BulkBody,
  all: readonly ReadonlyMap<number, string>[],
  changed: ReadonlyMap<number, string>,
): Promise<void> {
  const indices = new Map<string, Set<string>>();
  for (const item of body.items) {
    if (!changed.has(item.position)) continue;
    const { index } = itemNow(item, changed);
    for (const pipelines of all) {
      const pipeline = pipelines.get(item.position);
      if (pipeline !== undefined) indices.set(pipeline, (indices.get(pipeline) ?? new Set()).add(index));
    }
  }
  for (const [pipeline, of] of indices) await noteModels(context, pipeline, of);
}

/**
 * The pipelines that indices name, as far as it can be told before the body is read that they will be asked for: the cluster answers while
 * the lines are read.
 */
function askedAhead(context: Writing, { path, query }: EngineRequest): Map<string, Promise<string | undefined>> {
  const { index } = path;
  if (index === undefined || query['pipeline'] !== undefined) return new Map();
  const found = pipelineOf(context, undefined, index);
  // A request that awaits this gets the error; if none awaits it, nobody has to know.
  found.catch(() => undefined);
  return new Map([[index, found]]);
}

/** The pipeline of each item that goes through one, by its position. */
async function pipelinesOf(
  context: Writing,
  request: EngineRequest,
  items: readonly BulkItem[],
  defaults: ReadonlyMap<string, Promise<string | undefined>>,
): Promise<Map<number, string>> {
  const asked = request.query['pipeline'];
  const found = new Map<number, string>();
  const known = new Map<string, string | undefined>();
  for (const item of items) {
    const named = item.pipeline ?? asked;
    let pipeline: string | undefined;
    if (item.kind === 'delete' || named === NONE) continue;
    if (named !== undefined) {
      pipeline = named;
    } else {
      if (!known.has(item.index)) {
        known.set(item.index, await (defaults.get(item.index) ?? pipelineOf(context, undefined, item.index)));
      }
      pipeline = known.get(item.index);
    }
    if (pipeline !== undefined) found.set(item.position, pipeline);
  }
  return found;
}

/** The last pipeline of the index that each item is for now, by its position. */
async function finalsOf(
  { finals }: Writing,
  { items }: BulkBody,
  changed: ReadonlyMap<number, string>,
  own: ReadonlyMap<number, string>,
): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  const known = new Map<string, string | undefined>();
  for (const item of items) {
    if (item.kind === 'delete' || own.has(item.position)) continue;
    const { index } = itemNow(item, changed);
    if (!known.has(index)) known.set(index, await finals.of(index));
    const pipeline = known.get(index);
    if (pipeline !== undefined) found.set(item.position, pipeline);
  }
  return found;
}

/** What becomes of items, by their positions. */
interface Become {
  readonly changed: Map<number, string>;
  /** The answers to those that do not reach the cluster. */
  readonly own: Map<number, string>;
  /** What updates may add. One pipeline after another runs on it, and its last form replaces all that it stood for at first. */
  readonly upserts: Map<number, Upsert>;
}

/** Runs a pipeline for each item that has one. */
async function throughPipelines(
  context: Writing,
  body: BulkBody,
  pipelines: ReadonlyMap<number, string>,
  { changed, own, upserts }: Become,
  cancel?: Cancel,
): Promise<void> {
  const groups = new Map<string, BulkItem[]>();
  for (const it of body.items) {
    const pipeline = pipelines.get(it.position);
    if (pipeline === undefined || own.has(it.position)) continue;
    const item = itemNow(it, changed);
    if (item.kind === 'update') {
      try {
        const upsert = upserts.get(item.position) ?? upsertOf(item.source);
        if (upsert === undefined) continue;
        upserts.set(item.position, upsert);
      } catch (error) {
        own.set(item.position, item.failed(failureOf(error)));
        continue;
      }
    }
    const group = groups.get(pipeline);
    if (group === undefined) groups.set(pipeline, [item]);
    else group.push(item);
  }
  for (const [pipeline, items] of groups) {
    const sourceOf = ({ position, source }: BulkItem): string => upserts.get(position)?.source ?? source;
    const outcomes = await run(context, pipeline, items, sourceOf, cancel);
    outcomes.forEach((made, at) => {
      const item = items[at];
      if (item === undefined) return;
      const upsert = upserts.get(item.position);
      if (made.kind === 'document' && upsert !== undefined) {
        // The update is for the document that its item names.
        const { index, id, routing } = item;
        upserts.set(item.position, { ...upsert, source: made.source });
        changed.set(
          item.position,
          item.rewritten({ ...made, index, id, routing, source: oneLine(upsert.with(made.source)) }),
        );
      } else if (made.kind === 'document') changed.set(item.position, item.rewritten(made));
      else if (made.kind === 'dropped') own.set(item.position, item.dropped());
      else own.set(item.position, item.failed(made));
    });
  }
}

async function run(
  context: Writing,
  pipeline: string,
  items: readonly BulkItem[],
  sourceOf: (item: BulkItem) => string,
  cancel?: Cancel,
): Promise<readonly Outcome[]> {
  const outcomes: (Outcome | undefined)[] = items.map((item) => problemOf(sourceOf(item)));
  const good = items.filter((_, at) => outcomes[at] === undefined);
  const given: Given[] = good.map((item) => ({
    index: item.index,
    id: item.id,
    routing: item.routing,
    source: sourceOf(item),
  }));
  let made: readonly Outcome[];
  try {
    made = await context.pipelines.run(pipeline, given, cancel);
  } catch (error) {
    const failed = failureOf(error);
    made = given.map(() => failed);
  }
  let next = 0;
  return outcomes.map((known) => known ?? made[next++] ?? { kind: 'dropped' });
}

/** What is wrong with a line that has to be a document, if anything. */
function problemOf(source: string): Outcome | undefined {
  try {
    return isObject(JSON.parse(source)) ? undefined : failureOf(illegal('a document has to be an object'));
  } catch (error) {
    return failureOf(refusal(400, 'document_parsing_exception', `failed to parse: ${String(error)}`));
  }
}

/** Items that a restricted key may not write get an error of their own, as from the native engine. */
async function refuseItems(
  context: Writing,
  request: EngineRequest,
  items: readonly BulkItem[],
  own: Map<number, string>,
): Promise<void> {
  // Thousands of items are for an index or two: each is decided about once.
  const decided = new Map<string, Outcome | undefined>();
  for (const item of items) {
    const kind = item.kind === 'index' && item.id === undefined ? 'create' : item.kind;
    const key = `${kind} ${item.index}`;
    if (!decided.has(key)) decided.set(key, await refusalOf(context, request, item.index, kind));
    const refused = decided.get(key);
    if (refused !== undefined) own.set(item.position, item.failed(refused));
  }
}

/** A pipeline may have sent a document to another index: one that the key may not write to, or one of Sparrow's own, which nobody may. */
async function refuseMoved(
  context: Writing,
  request: EngineRequest,
  body: BulkBody,
  changed: ReadonlyMap<number, string>,
  own: Map<number, string>,
): Promise<void> {
  for (const item of body.items) {
    if (own.has(item.position)) continue;
    const moved = itemNow(item, changed);
    if (moved.index === item.index) continue;
    const refused = await refusalOf(context, request, moved.index, moved.kind);
    if (refused !== undefined) own.set(item.position, item.failed(refused));
  }
}

async function refusalOf(
  context: Writing,
  request: EngineRequest,
  index: string,
  kind: keyof typeof WRITE_ACTIONS,
): Promise<Outcome | undefined> {
  try {
    await checkWrite(context, request, index, kind);
    return undefined;
  } catch (error) {
    return failureOf(error);
  }
}

/** Checks that a caller may write to an index, and make it where it is not there. */
export async function checkWrite(
  { names, transport }: Pick<Writing, 'names' | 'transport'>,
  request: Asker,
  index: string,
  kind: keyof typeof WRITE_ACTIONS,
): Promise<void> {
  await names.check(request, [index], WRITE_ACTIONS[kind]);
  if (request.rights === undefined || kind === 'delete') return;
  const { status } = await transport.ask({ method: 'HEAD', path: `/${encodeURIComponent(index)}` });
  // Writing to a name that is not there makes an index.
  if (status === 404) await names.check(request, [index], 'indices:admin/auto_create');
}

/**
 * The pipeline that a document goes through: the one that the request names, else the one that its index names, else the one
 * that a template would give the index which the write makes.
 */
export async function pipelineOf(
  { transport }: Pick<Writing, 'transport'>,
  asked: string | undefined,
  index: string,
): Promise<string | undefined> {
  if (asked !== undefined) return asked === NONE || asked === '' ? undefined : asked;
  const name = encodeExpression(index);
  const settings = await transport.json({
    method: 'GET',
    path: `/${name}/_settings/index.default_pipeline`,
    query: { flat_settings: 'true' },
  });
  if (settings.status === 404) {
    const made = await transport.json({ method: 'POST', path: `/_index_template/_simulate_index/${name}` });
    refuseUnknown(made);
    return made.status === 200
      ? given(defaultIn(made.body, ['template', 'settings', 'index', 'default_pipeline']))
      : undefined;
  }
  refuseUnknown(settings);
  if (settings.status !== 200 || !isObject(settings.body)) return undefined;
  const found = Object.entries(settings.body).map(
    ([of, it]) => [of, defaultIn(it, ['settings', 'index.default_pipeline'])] as const,
  );
  if (found.every(([, pipeline]) => pipeline === undefined)) return undefined;
  const [only, second] = found;
  if (second === undefined) return given(only?.[1]);
  const named = found.find(([of]) => of === index);
  if (named !== undefined) return given(named[1]);
  const written = await writeIndexOf(transport, index);
  return given(found.find(([of]) => of === written)?.[1]);
}

function defaultIn(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
}

function given(pipeline: unknown): string | undefined {
  return typeof pipeline === 'string' && pipeline !== NONE && pipeline !== '' ? pipeline : undefined;
}

async function send(
  { transport }: Writing,
  request: EngineRequest,
  index: string,
  id: string | undefined,
  query: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const endpoint = request.op === 'create_doc' ? '_create' : '_doc';
  const path = `/${encodeURIComponent(index)}/${endpoint}${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;
  return asNative(replyOf(await transport.ask({ method: id === undefined ? 'POST' : 'PUT', path, query, body })));
}

/** Errors of OpenSearch about documents by which clients know them: the sentence about too many fields, and vectors that do not fit. */
function asNative(reply: EngineReply): EngineReply {
  const bytes = asBuffer(reply.body);
  if (!bytes.includes('Limit of total fields [') && !bytes.includes('of type [knn_vector]')) return reply;
  const text = bytes
    .toString()
    .replaceAll(/(Limit of total fields \[\d+\] has been exceeded)(?! while)/g, '$1 while adding new fields')
    .replaceAll(
      /"mapper_parsing_exception"(,"reason":"failed to parse field \[[^\]]*\] of type )\[knn_vector\]/g,
      '"document_parsing_exception"$1[dense_vector]',
    );
  return { ...reply, body: Buffer.from(text) };
}

function dropped(index: string, id: string | undefined): EngineReply {
  const shards = { total: 0, successful: 0, failed: 0 };
  const body = { _index: index, _id: id ?? null, _version: -3, result: 'noop', _shards: shards };
  return { status: 200, body: Buffer.from(JSON.stringify(body)) };
}
