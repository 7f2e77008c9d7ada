import type { Cancel, EngineReply, EngineRequest } from '@sparrow-search/engine';

import { BulkBody, type BulkItem, type BulkKind, itemNow, itemsIn } from './bulk-body.js';
import { pipelineOf } from './default-pipelines.js';
import { illegal, refusal } from './errors.js';
import { asBuffer, checkUtf8, isObject, isSet, malformedAnswer, oneLine, textOf, withoutMark } from './json.js';
import { type Given, type Outcome, failureOf, noteModels } from './pipelines.js';
import { replyOf, stoppable } from './replies.js';
import { bulkPassages } from './semantic-documents.js';
import { complete, inOrder, placesIn } from './semantic-updates.js';
import { type Upsert, upsertOf } from './upserts.js';
import { bulkVectors } from './vector-documents.js';
import { NONE, type Writing, asNative, checkWrite, documentsOf } from './writing.js';

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
    await prepareAll(context, request, body, changed, own);
    await bulkVectors(context.vectors, body.items, changed, own);
    const since = performance.now();
    const { updates, made } = await bulkPassages(context.semantic, body.items, changed, own, cancel);
    const query: Record<string, string> = { ...request.query, pipeline: NONE };
    Reflect.deleteProperty(query, 'list_executed_pipelines');
    const path = request.path['index'] === undefined ? '/_bulk' : `/${encodeURIComponent(request.path['index'])}/_bulk`;
    const left = body.items.filter(({ position }) => !own.has(position));
    if (updates.size > 0) {
      await inOrder(context, { path, query, items: body.items, changed, own, updates }, signal, cancel);
    } else if (left.length > 0) {
      const isWhole =
        own.size === 0 && changed.size === 0 && !body.items.some(({ pipeline }) => pipeline !== undefined);
      const sent = isWhole ? bytes : left.map((item) => changed.get(item.position) ?? item.written()).join('');
      const answered = await context.transport.ask({ method: 'POST', path, query, body: sent, ndjson: true, signal });
      if (isWhole || answered.status !== 200) return asNative(replyOf(answered));
      const items = itemsIn(answered.body.toString());
      // A write that the cluster answered nothing about cannot be acknowledged.
      if (items.length !== left.length) throw malformedAnswer();
      left.forEach(({ position }, at) => own.set(position, items[at] ?? '{}'));
    }
    await noteAll(context, left, [pipelines, finals], changed);
    if (made.length > 0) {
      const written = left.filter(({ kind, position }) => kind !== 'delete' && !updates.has(position));
      const answers = written.map(({ position }) => own.get(position) ?? '{}');
      const routings = written.map(({ routing }) => routing);
      await complete(context, made, since, placesIn(answers, routings));
    }
    const all = body.items.map(({ position }) => own.get(position) ?? '{}');
    const took = Math.round(performance.now() - begun);
    return asNative({
      status: 200,
      body: Buffer.from(`{"took":${String(took)},"errors":${String(all.some(hasFailed))},"items":[${all.join(',')}]}`),
    });
  });
}

/** Whether the answer to an item says that it was refused; a document in it may hold the same name. */
function hasFailed(item: string): boolean {
  return (
    item.includes('"error":') &&
    Object.values(JSON.parse(item) as Readonly<Record<string, object>>).some((it) => 'error' in it)
  );
}

/** Items of a bulk request for one index, which has to be an alias or need not. */
interface Prepared {
  readonly index: string;
  readonly onlyAlias: boolean;
  readonly of: BulkItem[];
}

/** Puts the fields into mappings that the documents of a bulk request bring; where one cannot be, they are refused. */
async function prepareAll(
  { dynamic }: Writing,
  { query }: EngineRequest,
  { items }: BulkBody,
  changed: ReadonlyMap<number, string>,
  own: Map<number, string>,
): Promise<void> {
  const groups = new Map<string, Prepared>();
  for (const item of items) {
    if (item.kind === 'delete' || own.has(item.position)) continue;
    const now = itemNow(item, changed);
    const onlyAlias = isSet(textOf(item.option('require_alias')) ?? query['require_alias']);
    const key = `${String(onlyAlias)} ${now.index}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { index: now.index, onlyAlias, of: [now] });
    else group.of.push(now);
  }
  const written = (item: BulkItem): readonly string[] => {
    try {
      return item.kind === 'update' ? documentsOf(item.source) : [item.source];
    } catch (error) {
      own.set(item.position, item.failed(failureOf(error)));
      return [];
    }
  };
  for (const { index, onlyAlias, of } of groups.values()) {
    try {
      await dynamic.prepare(index, () => of.flatMap(written), onlyAlias);
    } catch (error) {
      for (const item of of) own.set(item.position, item.failed(failureOf(error)));
    }
  }
}

/** Writes down which models filled fields of the indices that changed documents went to. */
async function noteAll(
  context: Writing,
  written: readonly BulkItem[],
  all: readonly ReadonlyMap<number, string>[],
  changed: ReadonlyMap<number, string>,
): Promise<void> {
  const indices = new Map<string, Set<string>>();
  for (const item of written) {
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

/** The problem with a line that should be a document; undefined if it is one. */
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
  kind: BulkKind,
): Promise<Outcome | undefined> {
  try {
    await checkWrite(context, request, index, kind);
    return undefined;
  } catch (error) {
    return failureOf(error);
  }
}
