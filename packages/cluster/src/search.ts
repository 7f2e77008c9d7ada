import {
  type Cancel,
  EngineError,
  type EngineReply,
  type EngineRequest,
  type SearchEngine,
} from '@sparrow-search/engine';

import { illegal, notOverCluster, refusal } from './errors.js';
import type { FieldModels } from './field-models.js';
import { mayNameIndices } from './foreign-indices.js';
import { type Ranked, fuse, shortest } from './fusion.js';
import {
  type Span,
  decode,
  elements,
  isObject,
  members,
  parse,
  rawOf,
  textOf,
  valueOf,
  whole,
  parseAnswer,
  malformedAnswer,
} from './json.js';
import { type Names, encodeExpression } from './names.js';
import type { Product } from './product.js';
import type { Fusion, Leaf, Node } from './retrievers.js';
import { readSearch } from './reading.js';
import { type SearchBody, leavesOf } from './search-body.js';
import { type Answered, type Transport, cancelled } from './transport.js';

/** What a search needs of its surroundings. */
export interface Searching {
  readonly native: SearchEngine;
  readonly transport: Transport;
  readonly product: Product;
  readonly names: Names;
  readonly models: FieldModels;
}

/** Names that a body has to hold for anything in it to be translated. */
const TRANSLATED = /"(?:text_expansion|weighted_tokens|sparse_vector|semantic|rule|knn|sub_searches|rank|retriever)"/;

/** Parameters of an address that say which indices, and go where the indices are named. */
const OF_TARGET = [
  'routing',
  'preference',
  'ignore_unavailable',
  'allow_no_indices',
  'expand_wildcards',
  'search_type',
];

/** Parameters of an address that a search which fuses lists has a meaning for. */
const OF_FUSED: ReadonlySet<string> = new Set([
  ...[...OF_TARGET, 'from', 'size', 'track_total_hits', 'typed_keys', 'rest_total_hits_as_int'],
  ...[
    'ccs_minimize_roundtrips',
    'request_cache',
    'batched_reduce_size',
    'max_concurrent_shard_requests',
    'pre_filter_shard_size',
  ],
]);

/** What the header of a search says besides its indices. */
const OF_HEADER: ReadonlySet<string> = new Set([
  ...[...OF_TARGET, 'request_cache', 'allow_partial_search_results', 'ccs_minimize_roundtrips'],
]);

/** Most searches of one `_msearch`, and how many of them are asked for at once: as many as a node has connections. */
const MOST_SEARCHES = 10_000;
const SEARCHES_AT_ONCE = 64;

/** A page ends here: the index setting `max_result_window` of every cluster. */
const RESULT_WINDOW = 10_000;

/** Operations whose body is a search or a query, and where they go. */
export const SEARCHES = {
  search: '_search',
  count: '_count',
  validate_query: '_validate/query',
} as const;

/** Answers `_search`, `_count` and `_validate/query`. */
export async function search(
  context: Searching,
  request: EngineRequest,
  body: Uint8Array | undefined,
  cancel?: Cancel,
): Promise<EngineReply> {
  const endpoint = SEARCHES[request.op as keyof typeof SEARCHES];
  const restricted = request.rights !== undefined;
  const expression = await context.names.expression(request, request.path['index']);
  if (restricted && request.query['scroll'] !== undefined)
    throw notOverCluster('[scroll] for a key that may use some indices only,');
  if (expression === undefined) return nothing(request);
  return stoppable(cancel, async (signal) => {
    const path = `/${encodeExpression(expression)}/${endpoint}`;
    const text = body === undefined || body.length === 0 ? undefined : decode(body);
    if (text === undefined || (!restricted && !TRANSLATED.test(text) && !mayNameIndices(text))) {
      return replyOf(await ask(context, request, path, body, signal));
    }
    const read = await readSearch(context, request, expression, text, cancel);
    if (read.fusion === undefined) {
      return withWarnings(replyOf(await ask(context, request, path, read.translated(), signal)), read.warnings);
    }
    if (request.op !== 'search')
      throw illegal(`request does not support [${read.fusion.form === 'rank' ? 'rank' : 'retriever'}]`);
    const reply = await fused(context, request, expression, read, read.fusion, signal);
    return withWarnings(reply, read.warnings);
  });
}

/** Answers `_msearch`: each search of it as if it had come alone. */
export async function msearch(
  context: Searching,
  request: EngineRequest,
  body: Uint8Array | undefined,
  cancel?: Cancel,
): Promise<EngineReply> {
  if (body !== undefined) checkLines(body);
  const text = body === undefined ? '' : decode(body);
  const restricted = request.rights !== undefined;
  const lines = text.split('\n').filter((line, at, all) => line.trim() !== '' || (at % 2 === 0 && at < all.length - 1));
  if (lines.length === 0 || lines.length % 2 !== 0) {
    throw refusal(400, 'action_request_validation_exception', 'Validation Failed: 1: no requests added;');
  }
  const begun = performance.now();
  const answers = await inTurn(lines.length / 2, async (at) => {
    const header = parse(lines[2 * at]?.trim() === '' ? '{}' : (lines[2 * at] ?? '{}'));
    const one = lines[2 * at + 1] ?? '{}';
    if (!isObject(header)) throw illegal('the header of a search has to be an object');
    const { index, indices, ...more } = header;
    const named = index ?? indices ?? request.path['index'];
    const query: Record<string, string> = { ...request.query };
    for (const drop of ['max_concurrent_searches']) Reflect.deleteProperty(query, drop);
    for (const [name, value] of Object.entries(more)) {
      if (!OF_HEADER.has(name)) throw illegal(`key [${name}] is not supported in the metadata section`);
      query[name] = String(value);
    }
    const asked: EngineRequest = {
      ...request,
      op: 'search',
      path: {
        ...request.path,
        index: Array.isArray(named) ? named.join(',') : (textOf(named) ?? ''),
      },
      query,
      action: restricted ? 'indices:data/read/search' : request.action,
    };
    try {
      const { status, body: answer } = await search(context, asked, Buffer.from(one), cancel);
      const found = Buffer.from(answer).toString();
      return status === 200 ? `${found.slice(0, found.lastIndexOf('}'))},"status":200}` : found;
    } catch (error) {
      if (error instanceof EngineError) return Buffer.from(error.body).toString();
      throw error;
    }
  });
  const took = Math.round(performance.now() - begun);
  return { status: 200, body: Buffer.from(`{"took":${String(took)},"responses":[${answers.join(',')}]}`) };
}

/** @throws {EngineError} 400 for more searches than one request may have, before any of them is looked at */
function checkLines(body: Uint8Array): void {
  let lines = 0;
  for (let at = body.indexOf(0x0a); at >= 0; at = body.indexOf(0x0a, at + 1)) {
    lines += 1;
    if (lines > 2 * MOST_SEARCHES) {
      throw illegal(`an _msearch over a cluster may have at most [${String(MOST_SEARCHES)}] searches`);
    }
  }
}

/** Does as many pieces of work as are said, some at once; what they give comes in their order. None is begun after one that failed. */
async function inTurn<T>(count: number, work: (at: number) => Promise<T>): Promise<readonly T[]> {
  const done: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const at = next;
      next += 1;
      try {
        done[at] = await work(at);
      } catch (error) {
        next = count;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, SEARCHES_AT_ONCE) }, worker));
  return done;
}

/** A hit of a list: which document, and its score there. */
interface Found {
  readonly hits: readonly Ranked[];
  readonly total: number;
  readonly exact: boolean;
}

async function fused(
  context: Searching,
  request: EngineRequest,
  expression: string,
  body: SearchBody,
  fusion: Fusion,
  signal: AbortSignal,
): Promise<EngineReply> {
  const unknown = Object.keys(request.query).find((name) => !OF_FUSED.has(name));
  if (unknown !== undefined) throw notOverCluster(`[${unknown}] of a search that fuses lists`);
  const begun = performance.now();
  const from = whole32('from', request.query['from'] ?? body.value('from') ?? 0);
  const size = whole32('size', request.query['size'] ?? body.value('size') ?? 10);
  checkWindow(fusion, size);
  const tracked = trackedHits(request.query['track_total_hits'] ?? body.value('track_total_hits') ?? 10_000);
  const leaves = leavesOf(fusion);
  const longest = widest(fusion, from + size);
  const target = Object.fromEntries(
    OF_TARGET.flatMap((name) => (request.query[name] === undefined ? [] : [[name, request.query[name]]])),
  );
  const filter = body.section('post_filter');
  const common = [
    ...['timeout'].flatMap((name) => pair(body, name)),
    ...(filter === undefined ? [] : [`"post_filter":${filter}`]),
  ];
  const union =
    leaves.length === 1 && leaves[0] !== undefined
      ? body.leafQuery(leaves[0])
      : `{"bool":{"should":[${leaves.map((leaf) => body.leafQuery(leaf)).join(',')}],"minimum_should_match":1}}`;
  const aggregations = [...pair(body, 'aggs'), ...pair(body, 'aggregations')];

  const searches = leaves.map((leaf) =>
    object([
      `"query":${body.leafQuery(leaf)}`,
      `"size":${String(longest)}`,
      '"_source":false',
      `"track_total_hits":${String(tracked === 0 ? false : tracked)}`,
      ...(leaf.minScore === undefined ? [] : [`"min_score":${String(leaf.minScore)}`]),
      ...common,
    ]),
  );
  // What all lists find together is counted, and aggregated, by a query of its own.
  searches.push(
    object([
      `"query":${union}`,
      '"size":0',
      `"track_total_hits":${String(tracked === 0 ? false : tracked)}`,
      ...common,
      ...aggregations,
    ]),
  );
  const parts = await multiple(context, expression, target, searches, signal);
  const lists = new Map(leaves.map((leaf, at) => [leaf, listOf(parts[at] ?? '')]));
  const all = parts[leaves.length] ?? '';

  const branch = fuseNode(fusion, lists, from + size);
  const minScore = body.value('min_score');
  const page = branch
    .map((hit, at) => ({ ...hit, rank: at + 1 }))
    .filter(({ score }) => typeof minScore !== 'number' || score >= minScore)
    .slice(from, from + size);
  const hits =
    page.length === 0 ? new Map<string, string>() : await fetch(context, expression, target, union, body, page, signal);

  const shownHits = page.flatMap(({ key, score, rank }) => {
    const hit = hits.get(key);
    return hit === undefined ? [] : [scored(hit, score, fusion.form === 'rank' ? rank : undefined)];
  });
  const first = page[0];
  const maxScore = fusion.form === 'rank' || size === 0 || first === undefined ? 'null' : shortest(first.score);
  const total = totalOf(fusion, all, branch, tracked, request.query['rest_total_hits_as_int'] === 'true');
  const answer = object([
    `"took":${String(Math.round(performance.now() - begun))}`,
    '"timed_out":false',
    `"_shards":${sectionOf(all, '_shards') ?? '{}'}`,
    `"hits":${object([...(total === undefined ? [] : [`"total":${total}`]), `"max_score":${maxScore}`, `"hits":[${shownHits.join(',')}]`])}`,
    ...(aggregations.length === 0 ? [] : [`"aggregations":${sectionOf(all, 'aggregations') ?? '{}'}`]),
  ]);
  return { status: 200, body: Buffer.from(answer) };
}

/** The lists of a tree made one; those of a window of the server's own choice are read on for pages behind it. */
function fuseNode(fusion: Fusion, lists: ReadonlyMap<Leaf, Found>, wanted: number): readonly Ranked[] {
  const inputs = fusion.inputs.map(({ node, weight, normalizer }) => ({
    hits: node.kind === 'leaf' ? (lists.get(node)?.hits ?? []) : fuseNode(node, lists, widest(fusion, wanted)),
    weight,
    normalizer,
  }));
  const fusedHits: Ranked[] = [];
  const known = new Set<string>();
  for (const size of windows(fusion, wanted)) {
    const cut = inputs.map((input) => ({ ...input, hits: input.hits.slice(0, size) }));
    // Scores of a wider window may be higher than the last of the page before; they are shown as they follow.
    let least = fusedHits.at(-1)?.score ?? Infinity;
    for (const hit of fuse(fusion.method, cut)) {
      if (fusedHits.length >= size) break;
      if (known.has(hit.key)) continue;
      known.add(hit.key);
      least = Math.min(least, hit.score);
      fusedHits.push({ key: hit.key, score: least });
    }
  }
  const { minScore } = fusion;
  return minScore === undefined ? fusedHits : fusedHits.filter(({ score }) => score >= minScore);
}

/** The windows that lists are fused in, one after another. */
function windows({ window: { size, given } }: Fusion, wanted: number): readonly number[] {
  const all = [Math.min(size, RESULT_WINDOW)];
  for (let last = all[0] ?? 0; !given && last < wanted && last < RESULT_WINDOW; all.push(last)) {
    last = Math.min(last * 10, RESULT_WINDOW);
  }
  return all;
}

/** @throws {EngineError} 400 for a window that is shorter than a page */
function checkWindow({ window: { size: window, given }, form, method }: Fusion, size: number): void {
  if (!given || window >= size) return;
  const what = form === 'rank' ? 'rank' : method.kind;
  throw refusal(
    400,
    'action_request_validation_exception',
    `Validation Failed: 1: [${what}] requires [rank_window_size: ${String(window)}] be greater than or equal to [size: ${String(size)}];`,
  );
}

/** How far each list of a tree is read at most. */
function widest(node: Node, wanted: number): number {
  if (node.kind === 'leaf') return 0;
  const own = windows(node, wanted).at(-1) ?? 0;
  return Math.max(own, ...node.inputs.map((input) => widest(input.node, own)));
}

/** Several searches in one request; each has to succeed. */
async function multiple(
  { transport }: Searching,
  expression: string,
  target: Readonly<Record<string, unknown>>,
  searches: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const header = JSON.stringify(target);
  const answered = await transport.ask({
    method: 'POST',
    path: `/${encodeExpression(expression)}/_msearch`,
    body: searches.map((one) => `${header}\n${one}\n`).join(''),
    ndjson: true,
    signal,
    repeatable: true,
  });
  const text = answered.body.toString();
  if (answered.status !== 200) throw passedOn(answered);
  const responses = membersOf(text).find(({ name }) => name === 'responses');
  const parts = responses === undefined ? [] : elements(text, responses.start).map((span) => rawOf(text, span));
  if (parts.length !== searches.length) throw malformedAnswer();
  for (const part of parts) {
    const [error, status] = [sectionOf(part, 'error'), sectionOf(part, 'status')];
    if (error === undefined && sectionOf(part, 'hits') === undefined) throw malformedAnswer();
    if (error === undefined) continue;
    throw passedOn({
      status: Number(status ?? 500),
      body: Buffer.from(`{"error":${error},"status":${status ?? '500'}}`),
    });
  }
  return parts;
}

function listOf(response: string): Found {
  const found = parseAnswer(response) as {
    hits: { total?: { value: number; relation: string }; hits: { _index: string; _id: string; _score: number }[] };
  };
  const { total, hits } = found.hits;
  return {
    hits: hits.map(({ _index, _id, _score }) => ({ key: keyOf(_index, _id), score: _score })),
    total: total?.value ?? 0,
    exact: total?.relation === 'eq',
  };
}

/** The documents of a page, as the request wants them shown, by their keys. */
async function fetch(
  context: Searching,
  expression: string,
  target: Readonly<Record<string, unknown>>,
  union: string,
  body: SearchBody,
  page: readonly Ranked[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const keys = page.map(({ key }) => JSON.parse(key) as [string, string]);
  const ids = [...new Set(keys.map(([, id]) => id))];
  const indices = [...new Set(keys.map(([index]) => index))];
  const filter = [{ ids: { values: ids } }, ...(indices.length > 1 ? [{ terms: { _index: indices } }] : [])];
  const shown = [
    '_source',
    'fields',
    'docvalue_fields',
    'stored_fields',
    'highlight',
    'version',
    'seq_no_primary_term',
  ];
  const asked = object([
    `"query":{"bool":{"must":[${union}],"filter":${JSON.stringify(filter)}}}`,
    `"size":${String(Math.min(ids.length * indices.length, RESULT_WINDOW))}`,
    '"track_total_hits":false',
    ...shown.flatMap((name) => pair(body, name)),
  ]);
  const [response = ''] = await multiple(context, expression, target, [asked], signal);
  const hits = sectionOf(response, 'hits') ?? '{}';
  const list = membersOf(hits).find(({ name }) => name === 'hits');
  const found = new Map<string, string>();
  for (const span of list === undefined ? [] : elements(hits, list.start)) {
    const hit = rawOf(hits, span);
    const member = (name: string): string => {
      const at = membersOf(hit).find((it) => it.name === name);
      return at === undefined ? '' : String(valueOf(hit, at));
    };
    found.set(keyOf(member('_index'), member('_id')), hit);
  }
  return found;
}

function totalOf(
  fusion: Fusion,
  all: string,
  branch: readonly Ranked[],
  tracked: number | true,
  asNumber: boolean,
): string | undefined {
  if (tracked === 0) return undefined;
  if (fusion.minScore !== undefined) {
    const value = branch.length;
    return asNumber ? String(value) : `{"value":${String(value)},"relation":"eq"}`;
  }
  const total = sectionOf(sectionOf(all, 'hits') ?? '{}', 'total');
  return asNumber && total !== undefined ? String((parseAnswer(total) as { value: number }).value) : total;
}

/** A hit with the score that it has after the fusion. */
function scored(hit: string, score: number, rank: number | undefined): string {
  return object(
    membersOf(hit).flatMap((member) => {
      if (member.name !== '_score') return [`${JSON.stringify(member.name)}:${rawOf(hit, member)}`];
      return [`"_score":${shortest(score)}`, ...(rank === undefined ? [] : [`"_rank":${String(rank)}`])];
    }),
  );
}

function keyOf(index: string, id: string): string {
  return JSON.stringify([index, id]);
}

function membersOf(text: string): ReturnType<typeof members> {
  return members(text, whole(text).start);
}

function sectionOf(text: string, name: string): string | undefined {
  if (text === '') return undefined;
  const member: Span | undefined = membersOf(text).find((it) => it.name === name);
  return member === undefined ? undefined : rawOf(text, member);
}

function pair(body: SearchBody, name: string): readonly string[] {
  const section = body.section(name);
  return section === undefined ? [] : [`"${name}":${section}`];
}

function object(parts: readonly string[]): string {
  return `{${parts.join(',')}}`;
}

function whole32(name: string, given: unknown): number {
  const number = Number(given);
  if (!Number.isInteger(number) || number < 0 || number > 2 ** 31 - 1) {
    throw illegal(`[${name}] parameter cannot be negative but was [${String(given)}]`);
  }
  return number;
}

/** How far hits are counted: a number, 0 for not at all, or all. */
function trackedHits(given: unknown): number | true {
  if (given === true || given === 'true') return true;
  if (given === false || given === 'false' || given === -1 || given === '-1') return 0;
  return whole32('track_total_hits', given);
}

/** The answer of a search in no index: a restricted key's pattern that stands for nothing it may use. */
function nothing({ op }: EngineRequest): EngineReply {
  const shards = { total: 0, successful: 0, skipped: 0, failed: 0 };
  const hits = { total: { value: 0, relation: 'eq' }, max_score: 0.0, hits: [] };
  const answers: Partial<Record<string, object>> = {
    count: { count: 0, _shards: shards },
    validate_query: { _shards: shards, valid: true },
  };
  return {
    status: 200,
    body: Buffer.from(JSON.stringify(answers[op] ?? { took: 0, timed_out: false, _shards: shards, hits })),
  };
}

async function ask(
  { transport }: Searching,
  { query }: EngineRequest,
  path: string,
  body: Uint8Array | string | undefined,
  signal: AbortSignal,
): Promise<Answered> {
  return transport.ask({ method: 'POST', path, query, body, signal, repeatable: query['scroll'] === undefined });
}

/** The cluster's answer as an engine's. */
export function replyOf({ status, body, text }: Answered): EngineReply {
  return { status, body, text };
}

/** An error of the cluster's, as an engine throws it. */
export function passedOn({ status, body }: Pick<Answered, 'status' | 'body'>): Error {
  const { error } = parseAnswer(body) as { error?: { type?: string; reason?: string } };
  const {
    type = 'exception',
    reason = 'the cluster refused a request',
    ...more
  } = typeof error === 'object' ? error : {};
  return refusal(status, type, reason, (more as { caused_by?: unknown }).caused_by);
}

export function withWarnings(reply: EngineReply, warnings: readonly string[]): EngineReply {
  return warnings.length === 0 ? reply : { ...reply, warnings };
}

/** Does work that ends when the caller goes away. */
export async function stoppable<T>(cancel: Cancel | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const end = cancel?.(() => {
    controller.abort(cancelled());
  });
  try {
    return await work(controller.signal);
  } finally {
    end?.();
  }
}
