import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { type CopyPlan, countOf } from './copy.js';
import { type HitDocument, readDocuments } from './documents-of-hits.js';
import type { FinalPipelines } from './final-pipelines.js';
import { type Json, isObject, textOf, valueAt } from './json.js';
import { type Asking, multiple } from './multiple.js';
import { encodeExpression } from './names.js';
import { COMPANION, PAYLOAD } from './passage-mappings.js';
import type { Given, Outcome, Pipelines } from './pipelines.js';
import { listOf } from './ranked-hits.js';
import { triedPassages } from './semantic-documents.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

/** What a dry run needs of its surroundings. */
interface Trying {
  readonly transport: Transport;
  readonly native: SearchEngine;
  readonly pipelines: Pipelines;
  readonly finals: FinalPipelines;
  readonly semantic: SemanticFields;
  readonly vectors: VectorFields;
}

/** Most documents of the sample, those that go to the models together, and the time after which no more are begun; as natively. */
const SAMPLE = 256;
const CHUNK = 32;
const PATIENCE_MS = 10_000;
const SHOWN_FAILURES = 10;

/** Bytes on a disk by which the native engine estimates a token, a number of a dense vector, and the links of one vector. */
const BYTES_OF = { token: 4, number: 4, vector: 160 } as const;

/** Sums over the documents of the sample. */
interface Counts {
  documents: number;
  dropped: number;
  failed: number;
  /** Characters of the documents as they are stored, and as they would be. */
  before: number;
  after: number;
  tokens: number;
  numbers: number;
  vectors: number;
  payload: number;
  /** Passages that two models read. */
  both: number;
}

/** What the models of this server have done since it started. */
interface Figures {
  readonly texts: number;
  readonly cache_hits: number;
  readonly tokens: number;
  readonly busy_seconds: number;
  readonly truncated_texts: number;
  readonly allocations: number;
}

/**
 * What a copy would do and cost, without writing anything: the documents are counted, and a sample of them goes through the pipelines and
 * gets its passages. Whether the cluster would take a document, it does not say beforehand.
 *
 * @throws {EngineError} the same that would prevent the copy
 */
export async function dryRun(context: Trying, plan: CopyPlan, cancel?: Cancel): Promise<Json> {
  const began = performance.now();
  const { transport, native, semantic } = context;
  const asking: Asking = { transport, expression: plan.source, target: {} };
  const total = await countOf(transport, plan);
  const hits = await sampleOf(asking, plan, Math.min(total, SAMPLE));
  const counts: Counts = {
    ...{ documents: 0, dropped: 0, failed: 0, before: 0, after: 0 },
    ...{ tokens: 0, numbers: 0, vectors: 0, payload: 0, both: 0 },
  };
  const failures: Json[] = [];
  const hasPassages = (await semantic.of(plan.source)) !== undefined;
  const shown = { _source: plan.sourceFilter ?? true, ...(hasPassages ? { stored_fields: [PAYLOAD] } : {}) };
  const start = await figuresOf(native);
  // The first documents wake deployments that sleep, which the others do not wait for any more.
  let awake = { since: performance.now(), documents: 0, figures: start };
  for (let at = 0; at < hits.length; at += CHUNK) {
    if (at > 0 && performance.now() - began > PATIENCE_MS) break;
    if (at === CHUNK) {
      awake = { since: performance.now(), documents: counts.documents, figures: await figuresOf(native) };
    }
    await readDocuments(asking, shown, hits.slice(at, at + CHUNK), async (documents) => {
      failures.push(...(await tried(context, plan, documents, counts, cancel)));
    });
  }
  const end = await figuresOf(native);
  const took = performance.now() - awake.since;
  const scale = counts.documents === 0 ? 0 : total / counts.documents;
  const all = (count: number): number => Math.round(count * scale);
  const texts = Math.max(0, end.texts - start.texts - counts.both);
  const each = uncached(took, awake.figures, end) / Math.max(1, counts.documents - awake.documents);
  const millis = Math.max(each * total, plan.perSecond === 0 ? 0 : (total / plan.perSecond) * 1000);
  const { tokens, numbers, vectors, payload } = counts;
  const ofVectors = tokens * BYTES_OF.token + numbers * BYTES_OF.number + vectors * BYTES_OF.vector + payload;
  const disk = all(counts.after * (await bytesPerCharacter(transport, plan.source, counts)) + ofVectors);
  const isWhole = counts.documents === total;
  const others = ['documents.to_write', 'documents.failed', 'texts', 'tokens'];
  return {
    took: Math.round(performance.now() - began),
    dry_run: true,
    documents: {
      total,
      to_write: Math.max(0, total - all(counts.failed) - all(counts.dropped)),
      dropped: all(counts.dropped),
      failed: all(counts.failed),
    },
    texts: { total: all(texts), truncated: all(ofTexts('truncated_texts', start, end)) },
    tokens: { total: all(ofTexts('tokens', start, end)) },
    time: { estimate: inUnits(millis, TIMES), millis: Math.round(millis) },
    disk: { estimate: inUnits(disk, SIZES), bytes: disk },
    exact: ['documents.total', ...(isWhole ? ['documents.dropped'] : [])],
    estimated: ['time', 'disk', ...(isWhole ? [] : ['documents.dropped']), ...others],
    sample: {
      documents: counts.documents,
      texts,
      tokens: Math.round(ofTexts('tokens', start, end)),
      took_millis: Math.round(performance.now() - began),
    },
    failures: failures.slice(0, SHOWN_FAILURES),
  };
}

/** Documents of a copy that are chosen at random, the same each time as long as nothing is written. */
async function sampleOf(
  asking: Asking,
  { query = { match_all: {} } }: CopyPlan,
  size: number,
): ReturnType<typeof keysOf> {
  if (size === 0) return [];
  const chosen = { query, random_score: { seed: 1, field: '_seq_no' }, boost_mode: 'replace' };
  return keysOf(asking, { query: { function_score: chosen }, size, _source: false, track_total_hits: false });
}

async function keysOf(asking: Asking, search: object): Promise<readonly { readonly key: string }[]> {
  const [answer = ''] = await multiple(asking, [JSON.stringify(search)]);
  return listOf(answer);
}

/** Does with documents what a copy does before it writes them, and counts what comes of it; gives those that would not be written. */
async function tried(
  { pipelines, finals, semantic, vectors }: Trying,
  plan: CopyPlan,
  documents: readonly HitDocument[],
  counts: Counts,
  cancel?: Cancel,
): Promise<readonly Json[]> {
  const sources = documents.map(({ source }) => JSON.stringify(source));
  let outcomes: Outcome[] = documents.map(({ id, routing }, at) => {
    return { kind: 'document', index: plan.dest, id, routing, source: sources[at] ?? '' };
  });
  const ran = [plan.pipeline, await finals.of(plan.dest)].filter((it) => it !== undefined);
  for (const pipeline of ran) {
    const places = [...outcomes.keys()].filter((at) => outcomes[at]?.kind === 'document');
    const given = places.map((at) => ({ ...(outcomes[at] as Given), index: plan.dest }));
    const made = await pipelines.run(pipeline, given, cancel);
    outcomes = outcomes.map((one, at) => (places.includes(at) ? (made[places.indexOf(at)] ?? one) : one));
  }
  const known = await semantic.writtenTo(plan.dest);
  if (known !== undefined) {
    const places = [...outcomes.keys()].filter((at) => outcomes[at]?.kind === 'document');
    const given = places.map((at) => {
      const payload = ran.length === 0 ? documents[at]?.fields?.[PAYLOAD]?.[0] : undefined;
      return { source: (outcomes[at] as Given).source, payload: textOf(payload) };
    });
    const { made } = await triedPassages(semantic, known, given, true, cancel);
    places.forEach((at, place) => {
      const one = made[place];
      if (one?.kind === 'failed') outcomes[at] = one;
      else if (one?.kind === 'document')
        outcomes[at] = { ...(outcomes[at] as Given), kind: 'document', source: one.source };
    });
  }
  const paths = await vectors.paths(plan.dest);
  const failures: Json[] = [];
  outcomes.forEach((outcome, at) => {
    counts.documents += 1;
    counts.before += sources[at]?.length ?? 0;
    if (outcome.kind === 'dropped') counts.dropped += 1;
    else if (outcome.kind === 'document') measure(JSON.parse(outcome.source) as Json, paths, counts);
    else {
      counts.failed += 1;
      const cause = JSON.parse(outcome.error) as unknown;
      failures.push({ index: plan.dest, id: documents[at]?.id, cause, status: outcome.status });
    }
  });
  return failures;
}

/** Counts what a document would take: its text, and the vectors in it and in its passages. */
function measure({ [COMPANION]: companion, ...document }: Json, paths: readonly string[], counts: Counts): void {
  counts.after += JSON.stringify(document).length;
  for (const path of paths) addVector(valueAt(document, path.split('.')), counts);
  if (!isObject(companion)) return;
  const { payload, ...places } = companion;
  counts.payload += textOf(payload)?.length ?? 0;
  addPassages(places, counts);
}

function addPassages(value: unknown, counts: Counts): void {
  if (Array.isArray(value)) {
    for (const passage of value.filter(isObject)) {
      if ('tokens' in passage && 'vector' in passage) counts.both += 1;
      for (const vector of [passage['tokens'], passage['vector']]) addVector(vector, counts);
    }
  } else if (isObject(value)) for (const inside of Object.values(value)) addPassages(inside, counts);
}

function addVector(vector: unknown, counts: Counts): void {
  if (Array.isArray(vector)) {
    counts.vectors += 1;
    counts.numbers += vector.length;
  } else if (isObject(vector)) counts.tokens += Object.keys(vector).length;
}

async function figuresOf(native: SearchEngine): Promise<Figures> {
  const { body } = await native.execute({ op: 'instruments', path: {}, query: {} });
  return (JSON.parse(Buffer.from(body).toString()) as { readonly encoder: Figures }).encoder;
}

/**
 * Tokens, or truncated texts, between two readings of the counters. Of texts whose vectors were cached nothing is counted, so the number is
 * scaled up to them.
 */
function ofTexts(name: 'tokens' | 'truncated_texts', before: Figures, after: Figures): number {
  const texts = after.texts - before.texts;
  const fresh = texts - (after.cache_hits - before.cache_hits);
  if (fresh * 2 >= texts) return fresh === 0 ? 0 : ((after[name] - before[name]) * texts) / fresh;
  // Where too few were read, the mean since the start of the server stands for them.
  return (after[name] * texts) / Math.max(1, after.texts - after.cache_hits);
}

/** Milliseconds that documents would have taken without the cache of vectors: the texts of a whole index are mostly not in it. */
function uncached(took: number, before: Figures, after: Figures): number {
  const texts = after.texts - before.texts;
  const fresh = texts - (after.cache_hits - before.cache_hits);
  const working = (seconds: number): number => (seconds * 1000) / Math.max(1, after.allocations);
  const encoding = Math.min(took, working(after.busy_seconds - before.busy_seconds));
  if (texts === 0) return took;
  const mean = working(after.busy_seconds) / Math.max(1, after.texts - after.cache_hits);
  return took - encoding + (fresh * 2 >= texts ? (encoding * texts) / fresh : mean * texts);
}

/** What storing and searching a character of the documents takes, as the shards of the source say. */
async function bytesPerCharacter(transport: Transport, source: string, { before, documents }: Counts): Promise<number> {
  const path = `/${encodeExpression(source)}/_stats/store`;
  const { body } = await transport.json({ method: 'GET', path, query: { filter_path: '_all.primaries' } });
  const bytes = Number(valueAt(body, ['_all', 'primaries', 'store', 'size_in_bytes']));
  const counted = await transport.json({ method: 'GET', path: `/${encodeExpression(source)}/_count` });
  const characters = (before / documents) * Number(valueAt(counted.body, ['count']));
  // Small indices are mostly overhead, and a mean of few documents may be far off.
  return bytes > 0 && characters > 0 ? Math.min(Math.max(bytes / characters, 0.4), 2) : 1;
}

const TIMES = [
  ['ms', 1000],
  ['s', 60],
  ['m', 60],
  ['h', 24],
  ['d', Infinity],
] as const;
const SIZES = [
  ['b', 1024],
  ['kb', 1024],
  ['mb', 1024],
  ['gb', 1024],
  ['tb', Infinity],
] as const;

/** A number in the largest unit of which there is one, with at most one decimal, rounded down. */
function inUnits(value: number, units: readonly (readonly [string, number])[]): string {
  let left = value;
  for (const [unit, next] of units) {
    if (left < next) return `${String(Math.floor(left * 10) / 10)}${unit}`;
    left /= next;
  }
  return '';
}
