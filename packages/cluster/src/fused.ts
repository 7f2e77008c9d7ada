import { type EngineReply, type EngineRequest, type Ranked, fuseLists } from '@sparrow-search/engine';

import { illegal, notOverCluster, refusal } from './errors.js';
import { elements, parseAnswer, rawOf, valueOf } from './json.js';
import { OF_TARGET, membersOf, multiple, sectionOf, targetOf } from './multiple.js';
import { type Fusion, type Leaf, type Node, depthOf, windows } from './retrievers.js';
import { type SearchBody, leavesOf } from './search-body.js';
import { shortest } from './shortest.js';
import type { Transport } from './transport.js';

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

/** A page ends here: the index setting `max_result_window` of every cluster. */
const RESULT_WINDOW = 10_000;

type Target = Readonly<Record<string, string>>;

/** Answers a search that fuses lists: they are read first, and then the documents of the page. */
export async function fused(
  context: { readonly transport: Transport },
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
  const target = targetOf(request.query);
  const filter = pair(body, 'post_filter');
  // A filter behind a retriever is for the hits of the fusion, and one behind `rank` for those of its lists.
  const common = [...pair(body, 'timeout'), ...(fusion.form === 'rank' ? filter : [])];
  const queries = leaves.map((leaf) => body.leafQuery(leaf));
  const union =
    queries.length === 1 ? queries.join() : `{"bool":{"should":[${queries.join(',')}],"minimum_should_match":1}}`;
  const aggregations = [...pair(body, 'aggs'), ...pair(body, 'aggregations')];

  const searches = leaves.map((leaf, at) =>
    object([
      `"query":${queries[at] ?? ''}`,
      `"size":${String(longest)}`,
      '"_source":false,"track_total_hits":false',
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
      ...pair(body, 'timeout'),
      ...filter,
      ...aggregations,
    ]),
  );
  const asking: Asking = { expression, target, signal };
  const parts = await multiple(context.transport, expression, target, searches, signal);
  const lists = new Map(leaves.map((leaf, at) => [leaf, listOf(parts[at] ?? '')]));
  const all = parts[leaves.length] ?? '';

  const { branch, first: firstOfGroups } = await sifted(
    context.transport,
    asking,
    body,
    fusion,
    fuseNode(fusion, lists, from + size),
  );
  const minScore = body.value('min_score');
  const page = firstOfGroups
    .map((hit, at) => ({ ...hit, rank: at + 1 }))
    .filter(({ score }) => typeof minScore !== 'number' || score >= minScore)
    .slice(from, from + size);
  const hits =
    page.length === 0 ? new Map<string, string>() : await fetch(context.transport, asking, union, body, page);

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

/** Where and how long documents are looked for. */
interface Asking {
  readonly expression: string;
  readonly target: Target;
  readonly signal: AbortSignal;
}

/**
 * The hits of a fusion that pass the filter behind it, and the first of each group that `collapse` makes of them.
 *
 * @param fusedHits all hits of the fusion, best first
 */
async function sifted(
  transport: Transport,
  { expression, target, signal }: Asking,
  body: SearchBody,
  fusion: Fusion,
  fusedHits: readonly Ranked[],
): Promise<{ readonly branch: readonly Ranked[]; readonly first: readonly Ranked[] }> {
  const filter = fusion.form === 'retriever' ? body.section('post_filter') : undefined;
  const { field } = (body.value('collapse') ?? {}) as { readonly field?: unknown };
  if ((filter === undefined && field === undefined) || fusedHits.length === 0)
    return { branch: fusedHits, first: fusedHits };
  const { filter: these, most } = theseOf(fusedHits);
  const asked = object([
    `"query":{"bool":{"filter":[${JSON.stringify(these).slice(1, -1)}${filter === undefined ? '' : `,${filter}`}]}}`,
    `"size":${String(most)},"_source":false,"track_total_hits":false`,
    ...(field === undefined ? [] : [`"docvalue_fields":${JSON.stringify([field])}`]),
  ]);
  const [response = ''] = await multiple(transport, expression, target, [asked], signal);
  const { hits } = parseAnswer(response) as {
    hits: { hits: readonly { _index: string; _id: string; fields?: Readonly<Record<string, unknown>> }[] };
  };
  const groups = new Map(hits.hits.map(({ _index, _id, fields }) => [keyOf(_index, _id), fields?.[String(field)]]));
  const branch = fusedHits.filter(({ key }) => groups.has(key));
  if (field === undefined) return { branch, first: branch };
  const seen = new Set<string>();
  const first = branch.filter(({ key }) => {
    const group = JSON.stringify(groups.get(key) ?? null);
    return !seen.has(group) && seen.add(group).size > 0;
  });
  return { branch, first };
}

/** A filter that lets through no documents but those of hits, and how many it lets through at most. */
function theseOf(hits: readonly Ranked[]): { readonly filter: readonly object[]; readonly most: number } {
  const keys = hits.map(({ key }) => JSON.parse(key) as [string, string]);
  const ids = [...new Set(keys.map(([, id]) => id))];
  const indices = [...new Set(keys.map(([index]) => index))];
  return {
    filter: [{ ids: { values: ids } }, ...(indices.length > 1 ? [{ terms: { _index: indices } }] : [])],
    most: Math.min(ids.length * indices.length, RESULT_WINDOW),
  };
}

/** The lists of a tree made one; those of a window of the server's own choice are read on for pages behind it. */
function fuseNode(fusion: Fusion, lists: ReadonlyMap<Leaf, readonly Ranked[]>, wanted: number): readonly Ranked[] {
  const inputs = fusion.inputs.map(({ node, weight, normalizer }) => ({
    hits: node.kind === 'leaf' ? (lists.get(node) ?? []) : fuseNode(node, lists, widest(fusion, wanted)),
    weight,
    normalizer,
  }));
  const fusedHits: Ranked[] = [];
  const known = new Set<string>();
  for (const size of windows(fusion.window, wanted)) {
    const cut = inputs.map((input) => ({ ...input, hits: input.hits.slice(0, size) }));
    // Scores of a wider window may be higher than the last of the page before; they are shown as they follow.
    let least = fusedHits.at(-1)?.score ?? Infinity;
    for (const hit of fuseLists(fusion.method, cut)) {
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
  const own = depthOf(node.window, wanted);
  return Math.max(own, ...node.inputs.map((input) => widest(input.node, own)));
}

/** The hits of a list, best first. */
function listOf(response: string): readonly Ranked[] {
  const { hits } = parseAnswer(response) as { hits: { hits: { _index: string; _id: string; _score: number }[] } };
  return hits.hits.map(({ _index, _id, _score }) => ({ key: keyOf(_index, _id), score: _score }));
}

/** The documents of a page, as the request wants them shown, by their keys. */
async function fetch(
  transport: Transport,
  { expression, target, signal }: Asking,
  union: string,
  body: SearchBody,
  page: readonly Ranked[],
): Promise<Map<string, string>> {
  const { filter, most } = theseOf(page);
  const shown = [
    'collapse',
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
    `"size":${String(most)}`,
    '"track_total_hits":false',
    ...shown.flatMap((name) => pair(body, name)),
  ]);
  const [response = ''] = await multiple(transport, expression, target, [asked], signal);
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
