import { setTimeout as sleep } from 'node:timers/promises';

import type { DynamicFields } from './dynamic-fields.js';
import { refusal } from './errors.js';
import type { FieldModels } from './field-models.js';
import type { FinalPipelines } from './final-pipelines.js';
import { sourceHits } from './hits.js';
import { isObject, malformedAnswer, oneLine, parseAnswer } from './json.js';
import { encodeExpression } from './names.js';
import { PAYLOAD } from './passage-mappings.js';
import { type Given, type Outcome, type Pipelines, noteModels } from './pipelines.js';
import type { Product } from './product.js';
import { passedOn } from './replies.js';
import { withPassages } from './semantic-documents.js';
import { type SemanticFields, type SemanticIndex, indexMissing } from './semantic-fields.js';
import { type Place, complete } from './semantic-updates.js';
import type { Failure, ShardProgress, TaskRecord } from './task-record.js';
import { type Transport, isTooLong } from './transport.js';

/** What a copy needs of its surroundings. */
export interface Copying {
  readonly transport: Transport;
  readonly product: Product;
  readonly pipelines: Pipelines;
  readonly models: FieldModels;
  readonly semantic: SemanticFields;
  readonly finals: FinalPipelines;
  readonly dynamic: DynamicFields;
  /** Checks that a restricted key may write to an index that a pipeline chose. */
  readonly checkTarget: (index: string) => Promise<void>;
}

/** What a copy is to do, as its request says. */
export interface CopyPlan {
  readonly source: string;
  readonly query: unknown;
  readonly sourceFilter: unknown;
  readonly batch: number;
  readonly dest: string;
  /** The pipeline that documents go through; absent where only their passages are made. */
  readonly pipeline?: string | undefined;
  /** The pipelines in place of it, by the indices that documents are read from. */
  readonly pipelines?: Readonly<Record<string, string>> | undefined;
  /** Whether documents are written where they are, if nobody else writes them in between. */
  readonly inPlace?: boolean;
  readonly creates: boolean;
  readonly proceeds: boolean;
  readonly maxDocs: number;
  /** Documents a second; 0 for as many as there can be. */
  readonly perSecond: number;
  readonly refreshes: boolean;
  /** The field whose model is changed, where the documents lack vectors of the new one. */
  readonly change?: string;
}

/** What a step has done, to be set down before the next. */
export type Progress = Pick<TaskRecord, 'shards' | 'tally' | 'failures'>;

/** Characters of documents that are encoded and written together; a cluster takes bodies of a certain size only. */
const PAGE_BYTES = 16 * 1024 * 1024;

/** Documents that are read first, as each may be long, and a node has all of an answer in its memory. */
const FIRST_READ = 8;

/** How long a view of the documents is kept for the next batch. */
const KEEP_ALIVE = '10m';

/** How often, and after how long, documents are sent again that the cluster had no room for. */
const RETRIES = 10;
const FIRST_RETRY_MS = 200;

/** How often a copy that waits looks whether it is to go on, in milliseconds. */
const LOOK_MS = 2_000;

/** The shards that a copy reads, in a fixed order. */
export async function shardsOf(transport: Transport, expression: string): Promise<readonly ShardProgress[]> {
  const path = `/${encodeExpression(expression)}/_search_shards`;
  const answered = await transport.ask({ method: 'POST', path, repeatable: true });
  if (answered.status !== 200) throw passedOn(answered);
  const found = parseAnswer(answered.body) as {
    indices?: Record<string, { filter?: unknown }>;
    shards: { index: string; shard: number }[][];
  };
  if (!Array.isArray(found.shards)) throw malformedAnswer();
  return found.shards
    .flatMap(([first]) => (first === undefined ? [] : [first]))
    .map(({ index, shard }) => {
      const filter = found.indices?.[index]?.filter;
      return { index, shard, ...(filter === undefined ? {} : { filter }) };
    })
    .sort((a, b) => (a.index === b.index ? a.shard - b.shard : a.index < b.index ? -1 : 1));
}

/** How many documents a copy will read. */
export async function countOf(transport: Transport, { source, query, maxDocs }: CopyPlan): Promise<number> {
  const path = `/${encodeExpression(source)}/_count`;
  const body = JSON.stringify(query === undefined ? {} : { query });
  const answered = await transport.ask({ method: 'POST', path, body, repeatable: true });
  if (answered.status !== 200) throw passedOn(answered);
  const { count } = parseAnswer(answered.body) as { count?: unknown };
  if (typeof count !== 'number') throw malformedAnswer();
  return Math.min(count, maxDocs);
}

/**
 * Copies what is left: shard by shard, in the order in which the documents were written there. Each batch is set down before the
 * next, so that the task that goes on reads no document again that was set down: where documents are written in place, none that was
 * written since the task began.
 *
 * @param setDown keeps how far it has come; says whether it is to go on
 */
export async function copy(
  context: Copying,
  plan: CopyPlan,
  begun: Progress,
  setDown: (progress: Progress) => Promise<boolean>,
): Promise<Progress> {
  let progress = begun;
  for (const [at, shard] of begun.shards.entries()) {
    if (shard.done === true) continue;
    const view = await openView(context, shard);
    try {
      let after = shard.after;
      let most = FIRST_READ;
      // What a change of a model has written is left out by its query.
      const isFirst = plan.inPlace === true && plan.change === undefined && shard.until === undefined;
      const bounded = isFirst ? { ...shard, until: await lastWritten(context, view) } : shard;
      if (isFirst) {
        progress = { ...progress, shards: progress.shards.map((it, place) => (place === at ? bounded : it)) };
        if (!(await setDown(progress))) return progress;
      }
      for (;;) {
        const started = Date.now();
        const wanted = Math.min(plan.batch, plan.maxDocs - done(progress));
        const page: Hit[] = [];
        let length = 0;
        let ended = wanted <= 0;
        while (!ended && page.length < wanted && length <= PAGE_BYTES) {
          const size = Math.min(most, wanted - page.length);
          const found = await read(context, plan, bounded, view, page.at(-1)?.seqNo ?? after, size);
          if (found === undefined) {
            most = Math.ceil(size / 2);
            continue;
          }
          ended = found.length < size;
          for (const hit of found) {
            // Documents beyond the length of a page are read again with the next one.
            if (length > PAGE_BYTES) ended = false;
            else page.push(hit);
            length += hit.source.length + (hit.payload?.length ?? 0);
          }
          // As many as should fill a page, by the mean length of those that were read; at most twice as many as last time.
          most = Math.max(1, Math.min(2 * most, Math.floor((PAGE_BYTES * page.length) / Math.max(1, length))));
        }
        const written = page.length === 0 ? progress : await write(context, plan, progress, page);
        after = page.at(-1)?.seqNo ?? after;
        const shards = written.shards.map((it, place) =>
          place === at ? { ...it, ...(after === undefined ? {} : { after }), ...(ended ? { done: true } : {}) } : it,
        );
        progress = { ...written, shards };
        if (!(await setDown(progress)) || progress.failures.length > 0) return progress;
        if (ended) break;
        if (!(await paced(plan, page.length, started, () => setDown(progress)))) return progress;
      }
    } finally {
      await closeView(context, view);
    }
  }
  if (plan.refreshes) {
    await context.transport.ask({
      method: 'POST',
      path: `/${encodeExpression(plan.dest)}/_refresh`,
      repeatable: true,
    });
  }
  return progress;
}

interface Hit extends Given {
  readonly seqNo: number;
  /** The primary term of its write, where it is written in place. */
  readonly term: number | undefined;
  /** The stored passages of the document, in Base64; those of texts that have not changed are kept. */
  readonly payload: string | undefined;
}

function done({ tally }: Progress): number {
  return tally.created + tally.updated + tally.noops + tally.version_conflicts;
}

async function openView({ transport, product }: Copying, { index, shard }: ShardProgress): Promise<string> {
  const path = product.name === 'OpenSearch' ? '_search/point_in_time' : '_pit';
  const answered = await transport.ask({
    method: 'POST',
    path: `/${encodeURIComponent(index)}/${path}`,
    query: { keep_alive: KEEP_ALIVE, preference: `_shards:${String(shard)}` },
    repeatable: true,
  });
  if (answered.status !== 200) throw passedOn(answered);
  const found = parseAnswer(answered.body) as { pit_id?: string; id?: string };
  const id = found.pit_id ?? found.id;
  if (id === undefined) throw malformedAnswer();
  return id;
}

/** The sequence number of the last document of a view; −1 for a shard without documents. */
async function lastWritten({ transport }: Copying, view: string): Promise<number> {
  const body = {
    ...{ size: 1, pit: { id: view, keep_alive: KEEP_ALIVE }, sort: [{ _seq_no: 'desc' }] },
    ...{ track_total_hits: false, _source: false },
  };
  const answered = await transport.ask({
    method: 'POST',
    path: '/_search',
    body: JSON.stringify(body),
    repeatable: true,
  });
  if (answered.status !== 200) throw passedOn(answered);
  return sourceHits(answered.body.toString())[0]?.seqNo ?? -1;
}

async function closeView({ transport, product }: Copying, view: string): Promise<void> {
  const isOpenSearch = product.name === 'OpenSearch';
  const body = JSON.stringify(isOpenSearch ? { pit_id: [view] } : { id: view });
  const path = isOpenSearch ? '/_search/point_in_time' : '/_pit';
  // It would end by itself.
  await transport.ask({ method: 'DELETE', path, body }).catch(() => undefined);
}

/** @returns undefined where the answer would be longer than any that is read, but fewer documents may be read at once */
async function read(
  { transport, semantic }: Copying,
  plan: CopyPlan,
  shard: ShardProgress,
  view: string,
  after: number | undefined,
  size: number,
): Promise<readonly Hit[] | undefined> {
  const { until } = shard;
  const written = until === undefined ? undefined : { range: { _seq_no: { lte: until } } };
  const filter = [plan.query, shard.filter, written].filter((it) => it !== undefined);
  const hasPassages = (await semantic.of(shard.index)) !== undefined;
  const body = {
    size,
    pit: { id: view, keep_alive: KEEP_ALIVE },
    query: filter.length === 0 ? { match_all: {} } : { bool: { filter } },
    sort: [{ _seq_no: 'asc' }],
    track_total_hits: false,
    ...(plan.sourceFilter === undefined ? {} : { _source: plan.sourceFilter }),
    ...(plan.inPlace === true ? { seq_no_primary_term: true } : {}),
    ...(hasPassages ? { stored_fields: [PAYLOAD], _source: plan.sourceFilter ?? true } : {}),
    ...(after === undefined ? {} : { search_after: [after] }),
  };
  const asked = { method: 'POST', path: '/_search', body: JSON.stringify(body), repeatable: true } as const;
  const answered = await transport.ask(asked).catch((error: unknown) => {
    if (size > 1 && isTooLong(error)) return undefined;
    throw error;
  });
  if (answered === undefined) return undefined;
  if (answered.status !== 200) throw passedOn(answered);
  return sourceHits(answered.body.toString()).map(({ id, routing, source, seqNo, term, payload }) => {
    if (source === undefined) {
      throw refusal(400, 'illegal_argument_exception', `[${shard.index}][${id}] didn't store _source`);
    }
    return { index: plan.inPlace === true ? shard.index : plan.dest, id, routing, source, seqNo, term, payload };
  });
}

/** Puts documents through the pipeline and writes what comes of them, each once whatever has to be sent again. */
async function write(context: Copying, plan: CopyPlan, before: Progress, page: readonly Hit[]): Promise<Progress> {
  const tally = { ...before.tally, batches: before.tally.batches + 1 };
  const failures: Failure[] = [...before.failures];
  const since = performance.now();
  const made: SemanticIndex[] = [];
  const written: Place[] = [];
  const routings = new Map<string, string | undefined>();
  const outcomes = await outcomesOf(context, plan, page, made);
  let lines: string[] = [];
  for (const [at, outcome] of outcomes.entries()) {
    const { id, seqNo, term } = page[at] ?? {};
    if (outcome.kind === 'dropped') tally.noops += 1;
    else if (outcome.kind === 'failed') {
      failures.push({
        index: plan.dest,
        id: id ?? null,
        cause: JSON.parse(outcome.error) as unknown,
        status: outcome.status,
      });
    } else {
      const { index, id: _id, routing, source } = outcome;
      if (_id !== undefined) routings.set(_id, routing);
      const action = {
        _index: index,
        ...(_id === undefined ? {} : { _id }),
        ...(routing === undefined ? {} : { routing }),
        ...(plan.inPlace === true ? { if_seq_no: seqNo, if_primary_term: term } : {}),
      };
      lines.push(`${JSON.stringify({ [plan.creates ? 'create' : 'index']: action })}\n${oneLine(source)}\n`);
    }
  }
  if (lines.length > 0 && plan.inPlace === true) await checkThere(context, page);
  let attempt = 0;
  while (lines.length > 0) {
    const count = portionOf(lines);
    const sent = lines.slice(0, count);
    const answered = await context.transport.ask({
      method: 'POST',
      path: '/_bulk',
      query: { pipeline: '_none' },
      body: sent.join(''),
      ndjson: true,
      // The documents have ids, so sending them twice writes them once.
      repeatable: true,
    });
    const full = answered.status === 429;
    if (answered.status !== 200 && !full) throw passedOn(answered);
    const items = full ? [] : itemsOf(answered.body);
    const again: string[] = [];
    sent.forEach((line, at) => {
      const item = items[at];
      if (item !== undefined && item.status < 300)
        written.push({ index: item._index, id: item._id, routing: routings.get(item._id) });
      if (item === undefined || item.status === 429) again.push(line);
      else if (item.status === 201) tally.created += 1;
      else if (item.status === 200) tally.updated += 1;
      else if (item.status === 409) {
        tally.version_conflicts += 1;
        if (!plan.proceeds) failures.push({ index: item._index, id: item._id, cause: item.error, status: item.status });
      } else failures.push({ index: item._index, id: item._id, cause: item.error, status: item.status });
    });
    lines = [...again, ...lines.slice(count)];
    if (again.length === 0) {
      attempt = 0;
      continue;
    }
    if (attempt >= RETRIES)
      throw refusal(429, 'es_rejected_execution_exception', 'the cluster had no room for documents, again and again');
    tally.bulk_retries += 1;
    await sleep(FIRST_RETRY_MS * 2 ** attempt);
    attempt += 1;
  }
  await complete(context, made, since, written);
  for (const index of new Set(outcomes.flatMap((it) => (it.kind === 'document' ? [it.index] : [])))) {
    for (const ran of [firstOf(plan, page), await finalOf(context, plan, index)])
      if (ran !== undefined) await noteModels(context, ran, [index]);
  }
  return { shards: before.shards, tally, failures };
}

/** How many of some lines are sent at once: with their passages and vectors they may be ten times as long as what was read. */
function portionOf(lines: readonly string[]): number {
  let characters = 0;
  const past = lines.findIndex((line) => (characters += line.length) > PAGE_BYTES);
  return past < 0 ? lines.length : past + 1;
}

/** The cluster makes an index that is not there, and documents that are written where they are need the one that they were read from. */
async function checkThere({ transport }: Copying, page: readonly Hit[]): Promise<void> {
  for (const index of new Set(page.map((hit) => hit.index))) {
    const { status } = await transport.ask({ method: 'HEAD', path: `/${encodeURIComponent(index)}` });
    if (status === 404) throw indexMissing(index);
  }
}

/** The pipeline that runs first on documents, which are all of one index. */
function firstOf({ pipeline, pipelines = {} }: CopyPlan, [first]: readonly Hit[]): string | undefined {
  const index = first?.index ?? '';
  return Object.hasOwn(pipelines, index) ? pipelines[index] : pipeline;
}

/** The pipeline that runs last on documents for an index; none runs on those that only get vectors of another model. */
async function finalOf({ finals }: Copying, plan: CopyPlan, index: string): Promise<string | undefined> {
  return plan.change === undefined ? finals.of(index) : undefined;
}

/**
 * What becomes of documents: of those that go through pipelines, and of those that get passages.
 *
 * @param madeFor the indices for which passages were made are added to it
 */
async function outcomesOf(
  context: Copying,
  plan: CopyPlan,
  page: readonly Hit[],
  madeFor: SemanticIndex[],
): Promise<readonly Outcome[]> {
  const pipeline = firstOf(plan, page);
  const outcomes: Outcome[] =
    pipeline === undefined
      ? page.map(({ index, id, routing, source }) => ({ kind: 'document', index, id, routing, source }))
      : [...(await context.pipelines.run(pipeline, page))];
  // A pipeline may send a document elsewhere; nothing may be done for an index that the caller may not write to.
  const checkTargets = async (): Promise<void> => {
    const isElsewhere = (index: string, at: number): boolean =>
      index !== (plan.inPlace === true ? page[at]?.index : plan.dest);
    for (const [index, places] of placesOf(outcomes)) {
      if (places.some((at) => isElsewhere(index, at))) await context.checkTarget(index);
    }
  };
  await checkTargets();
  let areSame = pipeline === undefined;
  for (const [index, places] of placesOf(outcomes)) {
    const final = await finalOf(context, plan, index);
    if (final === undefined) continue;
    areSame = false;
    const made = await context.pipelines.run(
      final,
      places.map((at) => outcomes[at] as Given),
    );
    places.forEach((at, place) => (outcomes[at] = made[place] ?? { kind: 'dropped' }));
    await checkTargets();
  }
  for (const [index, places] of placesOf(outcomes)) {
    const sources = (): readonly string[] =>
      places.flatMap((at) => (outcomes[at]?.kind === 'document' ? [outcomes[at].source] : []));
    await context.dynamic.prepare(index, sources);
    const known = await context.semantic.writtenTo(index);
    if (known === undefined) continue;
    const documents = places.flatMap((at) => {
      const it = outcomes[at];
      // A pipeline may have changed the texts that the passages were made of.
      const payload = areSame ? page[at]?.payload : undefined;
      return it?.kind === 'document' ? [{ source: it.source, payload }] : [];
    });
    madeFor.push(known);
    const made = await withPassages(context.semantic, known, documents, { paced: true });
    places.forEach((at, place) => {
      const [one, before] = [made[place], outcomes[at]];
      if (one?.kind === 'failed') outcomes[at] = one;
      else if (one?.kind === 'document' && before?.kind === 'document')
        outcomes[at] = { ...before, source: one.source };
    });
  }
  return outcomes;
}

/** Where the documents for each index are. */
function placesOf(outcomes: readonly Outcome[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  outcomes.forEach((it, at) => {
    if (it.kind === 'document') places.set(it.index, [...(places.get(it.index) ?? []), at]);
  });
  return places;
}

interface Item {
  readonly _index: string;
  readonly _id: string;
  readonly status: number;
  readonly error?: unknown;
}

function itemsOf(body: Buffer): readonly Item[] {
  const { items } = parseAnswer(body) as { items: Record<string, Item>[] };
  return items.flatMap((it) => Object.values(it)).filter((it): it is Item => isObject(it));
}

/** Waits as long as the rate wants it; says whether to go on, which is asked often enough for a task that is cancelled to end soon. */
async function paced(
  { perSecond }: CopyPlan,
  documents: number,
  started: number,
  goesOn: () => Promise<boolean>,
): Promise<boolean> {
  const end = perSecond === 0 ? started : started + (documents / perSecond) * 1000;
  for (;;) {
    const left = end - Date.now();
    if (left <= 0) return true;
    await sleep(Math.min(left, LOOK_MS));
    if (left > LOOK_MS && !(await goesOn())) return false;
  }
}
