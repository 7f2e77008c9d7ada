import { type Cancel, type EngineReply, type EngineRequest, type Ranked, Turns } from '@sparrow-search/engine';

import { type Sources, branchOf } from './branches.js';
import { different } from './diversity.js';
import { illegal, notOverCluster, refusal } from './errors.js';
import { Explanations } from './fused-explanations.js';
import { withCalibration } from './calibration.js';
import { type Collapse, hitsOfGroups, readCollapse } from './group-hits.js';
import { hitSpans } from './hits.js';
import { type Span, parseAnswer, rawOf } from './json.js';
import { type Asking, OF_TARGET, membersOf, multiple, sectionOf, targetOf } from './multiple.js';
import { type Phases, profileOf } from './profiles.js';
import { keyIn, keyOf, listOf, scoredAs, theseOf } from './ranked-hits.js';
import type { ReadingContext } from './reading.js';
import { modelScores, withEndpoints } from './reranking.js';
import { type Fusion, type Leaf, type Node, depthOf } from './retrievers.js';
import { type SearchBody, leavesOf } from './search-body.js';
import { shortest } from './shortest.js';

/** Parameters of an address that a search which fuses lists has a meaning for. */
const OF_FUSED: ReadonlySet<string> = new Set([
  ...[...OF_TARGET, 'from', 'size', 'track_total_hits', 'typed_keys', 'rest_total_hits_as_int', 'explain'],
  ...[
    'ccs_minimize_roundtrips',
    'request_cache',
    'batched_reduce_size',
    'max_concurrent_shard_requests',
    'pre_filter_shard_size',
  ],
]);

/** Hits that one search scores again: it is told the score of each by a clause, of which a cluster takes 1,024. */
const RESCORED_AT_ONCE = 1000;

/**
 * Answers a search that fuses lists: they are read first, and then the documents of the page.
 *
 * @param highlighted adds passages to the hits of an answer
 */
export async function fused(
  context: ReadingContext,
  request: EngineRequest,
  expression: string,
  body: SearchBody,
  given: Fusion,
  highlighted: (reply: EngineReply) => Promise<EngineReply>,
  signal: AbortSignal,
  cancel?: Cancel,
): Promise<EngineReply> {
  const unknown = Object.keys(request.query).find((name) => !OF_FUSED.has(name));
  if (unknown !== undefined) throw notOverCluster(`[${unknown}] of a search that fuses lists`);
  const begun = performance.now();
  const from = whole32('from', request.query['from'] ?? body.value('from') ?? 0);
  const size = whole32('size', request.query['size'] ?? body.value('size') ?? 10);
  checkWindow(given, size);
  const fusion = await withCalibration(
    context,
    request,
    expression,
    body,
    await withEndpoints(context.native, given),
    cancel,
  );
  const tracked = trackedHits(request.query['track_total_hits'] ?? body.value('track_total_hits') ?? 10_000);
  const isProfiled = body.value('profile') === true;
  const isExplained = body.value('explain') === true || ['', 'true'].includes(request.query['explain'] ?? 'false');
  const collapse = readCollapse(body);
  const phases: Phases = { infer: body.inferred, search: 0, fuse: 0, fetch: 0, highlight: 0, explain: 0 };
  const timed = async <T>(phase: keyof Phases, work: Promise<T>): Promise<T> => {
    const since = performance.now();
    const made = await work;
    phases[phase] += performance.now() - since;
    return made;
  };
  const leaves = leavesOf(fusion);
  const longest = widest(fusion, from + size);
  const target = targetOf(request.query);
  const filter = pair(body, 'post_filter');
  // A filter behind a retriever is for the hits of the fusion, and one behind `rank` for those of its lists.
  const ofLists = fusion.form === 'rank' ? body.section('post_filter') : undefined;
  const common = [...pair(body, 'timeout'), ...pair(body, 'indices_boost'), ...pair(body, 'profile')];
  const queries = leaves.map((leaf) => body.leafQuery(leaf));
  const union =
    queries.length === 1 ? queries.join() : `{"bool":{"should":[${queries.join(',')}],"minimum_should_match":1}}`;
  const beside = ['aggs', 'aggregations', 'suggest'].flatMap((name) => pair(body, name));

  const searches = leaves.map((leaf, at) =>
    object([
      `"query":${queries[at] ?? ''}`,
      `"size":${String(longest)}`,
      '"_source":false,"track_total_hits":false',
      ...(leaf.minScore === undefined ? [] : [`"min_score":${String(leaf.minScore)}`]),
      ...leaf.sections.map((member) => `"${member.name}":${body.piece(member)}`),
      ...common,
      ...(ofLists === undefined ? [] : [`"post_filter":${ofLists}`]),
    ]),
  );
  // What all lists find together is counted, and aggregated, by a query of its own.
  searches.push(
    object([
      `"query":${union}`,
      '"size":0',
      `"track_total_hits":${String(tracked === 0 ? false : tracked)}`,
      ...common,
      ...filter,
      ...beside,
    ]),
  );
  const asking: Asking = { transport: context.transport, expression, target, signal, pit: body.section('pit') };
  const parts = await timed('search', multiple(asking, searches));
  const turns = new Turns();
  const lists = new Map<Leaf, readonly Ranked[]>();
  for (const [at, leaf] of leaves.entries()) {
    await turns.next();
    lists.set(leaf, listOf(parts[at] ?? ''));
  }
  const all = parts[leaves.length] ?? '';

  const scoresOf = modelScores(context.native, asking, cancel);
  const choose = different(context, asking, cancel);
  const sources: Sources = {
    ...{ lists, longest, turns },
    scores: (rerank, hits) => timed('infer', scoresOf(rerank, hits)),
    different: (retriever, hits) => timed('search', choose(retriever, hits)),
    rescored: (section, hits) => timed('search', rescoredBy(asking, body, section, hits)),
  };
  const others = phases.infer + phases.search;
  const branch = await timed('fuse', branchOf(fusion, sources, from + size));
  phases.fuse -= phases.infer + phases.search - others;
  const {
    passed,
    first: firstOfGroups,
    groupOf,
  } = await timed('search', sifted(asking, body, fusion, branch.hits, collapse?.field));
  const minScore = body.value('min_score');
  const page = firstOfGroups
    .map((hit, at) => ({ ...hit, rank: at + 1 }))
    .filter(({ score }) => typeof minScore !== 'number' || score >= minScore)
    .slice(from, from + size);
  const { hits, profile } =
    page.length === 0
      ? { hits: new Map<string, string>(), profile: undefined }
      : await timed('fetch', fetch(asking, union, body, page, collapse));
  const innerHits =
    collapse === undefined || collapse.innerHits.length === 0
      ? []
      : await timed('fetch', hitsOfGroups(asking, body, collapse, union, page.map(groupOf)));
  const explanations =
    isExplained && (await timed('explain', Explanations.read(asking, body, fusion, branch, page, ofLists)));

  const shownHits: string[] = [];
  for (const [at, { key, score, rank }] of page.entries()) {
    if (turns.isOver) await turns.next();
    const hit = hits.get(key);
    if (hit === undefined) continue;
    const explanation = explanations === false ? undefined : explanations.of(key);
    shownHits.push(scored(hit, score, fusion.form === 'rank' ? rank : undefined, innerHits[at], explanation));
  }
  const first = page[0];
  const maxScore = fusion.form === 'rank' || size === 0 || first === undefined ? 'null' : shortest(first.score);
  const counted = least(fusion) === undefined ? undefined : { value: passed.length, ends: branch.ends };
  const total = totalOf(counted, all, tracked, request.query['rest_total_hits_as_int'] === 'true');
  const answer = object([
    `"took":${String(Math.round(performance.now() - begun))}`,
    '"timed_out":false',
    `"_shards":${sectionOf(all, '_shards') ?? '{}'}`,
    `"hits":${object([...(total === undefined ? [] : [`"total":${total}`]), `"max_score":${maxScore}`, `"hits":[${shownHits.join(',')}]`])}`,
    ...['aggregations', 'suggest', 'pit_id'].flatMap((name) => {
      const section = sectionOf(all, name);
      return section === undefined ? [] : [`"${name}":${section}`];
    }),
  ]);
  const reply = await timed('highlight', highlighted({ status: 200, body: Buffer.from(answer) }));
  if (!isProfiled) return reply;
  const ofSearches = [...parts.map((part) => sectionOf(part, 'profile')), profile];
  const shown = Buffer.from(reply.body).toString();
  return {
    ...reply,
    body: Buffer.from(`${shown.slice(0, shown.lastIndexOf('}'))},"profile":${profileOf(ofSearches, phases)}}`),
  };
}

/** Hits with the scores that the queries of a `rescore` give them, by the arithmetic of the cluster. */
async function rescoredBy(
  asking: Asking,
  body: SearchBody,
  section: Span,
  hits: readonly Ranked[],
): Promise<readonly Ranked[]> {
  const rescore = body.piece(section);
  const searches: string[] = [];
  for (let at = 0; at < hits.length; at += RESCORED_AT_ONCE) {
    const some = hits.slice(at, at + RESCORED_AT_ONCE);
    searches.push(
      object([
        `"query":${JSON.stringify(scoredAs(some))}`,
        `"size":${String(some.length)},"_source":false,"track_total_hits":false`,
        `"rescore":${rescore}`,
      ]),
    );
  }
  if (searches.length === 0) return [];
  const answers = await multiple(asking, searches);
  return answers.flatMap((answer) => listOf(answer)).sort((one, other) => other.score - one.score);
}

/**
 * The hits of a fusion that pass the filter behind it, and the first of each group that `collapse` makes of them.
 *
 * @param fusedHits all hits of the fusion, best first
 */
async function sifted(
  asking: Asking,
  body: SearchBody,
  fusion: Fusion,
  fusedHits: readonly Ranked[],
  field: string | undefined,
): Promise<{
  readonly passed: readonly Ranked[];
  readonly first: readonly Ranked[];
  readonly groupOf: (hit: Ranked) => unknown;
}> {
  const filter = fusion.form === 'retriever' ? body.section('post_filter') : undefined;
  if ((filter === undefined && field === undefined) || fusedHits.length === 0)
    return { passed: fusedHits, first: fusedHits, groupOf: () => undefined };
  const { filter: these, most } = theseOf(fusedHits);
  const asked = object([
    `"query":{"bool":{"filter":[${JSON.stringify(these).slice(1, -1)}${filter === undefined ? '' : `,${filter}`}]}}`,
    `"size":${String(most)},"_source":false,"track_total_hits":false`,
    ...(field === undefined ? [] : [`"docvalue_fields":${JSON.stringify([field])}`]),
  ]);
  const [response = ''] = await multiple(asking, [asked]);
  const { hits } = parseAnswer(response) as {
    hits: { hits: readonly { _index: string; _id: string; fields?: Readonly<Record<string, unknown>> }[] };
  };
  const groups = new Map(
    hits.hits.map(({ _index, _id, fields }) => [keyOf(_index, _id), [fields?.[String(field)]].flat()[0]]),
  );
  const groupOf = ({ key }: Ranked): unknown => groups.get(key);
  const passed = fusedHits.filter(({ key }) => groups.has(key));
  if (field === undefined) return { passed, first: passed, groupOf };
  const seen = new Set<string>();
  const first = passed.filter(({ key }) => {
    const group = JSON.stringify(groups.get(key) ?? null);
    return !seen.has(group) && seen.add(group).size > 0;
  });
  return { passed, first, groupOf };
}

/** @throws {EngineError} 400 for a window that is shorter than a page */
function checkWindow({ window: { size: window, given }, called }: Fusion, size: number): void {
  if (!given || window >= size) return;
  throw refusal(
    400,
    'action_request_validation_exception',
    `Validation Failed: 1: [${called}] requires [rank_window_size: ${String(window)}] be greater than or equal to [size: ${String(size)}];`,
  );
}

/** How far each list of a tree is read at most. */
function widest(node: Node, wanted: number): number {
  if (node.kind === 'leaf') return 0;
  const own = depthOf(node.window, wanted);
  return Math.max(own, ...node.inputs.map((input) => widest(input.node, own)));
}

/** The lowest score that a hit may have: a fused one, or a model's. */
function least({ minScore, rerank }: Fusion): number | undefined {
  return minScore ?? rerank?.minScore;
}

/** The documents of a page, as the request wants them shown, by their keys; and how long that took, if it is asked for. */
async function fetch(
  asking: Asking,
  union: string,
  body: SearchBody,
  page: readonly Ranked[],
  collapse: Collapse | undefined,
): Promise<{ readonly hits: Map<string, string>; readonly profile: string | undefined }> {
  const { filter, most } = theseOf(page);
  const shown = [
    '_source',
    'fields',
    'docvalue_fields',
    'stored_fields',
    'script_fields',
    'highlight',
    'version',
    'seq_no_primary_term',
    'profile',
  ];
  const asked = object([
    `"query":{"bool":{"must":[${union}],"filter":${JSON.stringify(filter)}}}`,
    `"size":${String(most)}`,
    '"track_total_hits":false',
    ...shown.flatMap((name) => pair(body, name)),
    ...(collapse === undefined ? [] : [`"collapse":${JSON.stringify({ field: collapse.field })}`]),
  ]);
  const [response = ''] = await multiple(asking, [asked]);
  const found = new Map<string, string>();
  const turns = new Turns();
  for (const span of hitSpans(response)) {
    if (turns.isOver) await turns.next();
    found.set(keyIn(response, span.start), rawOf(response, span));
  }
  return { hits: found, profile: sectionOf(response, 'profile') };
}

/** @param counted the hits of the fusion, where it leaves out some of those that its lists find */
function totalOf(
  counted: { readonly value: number; readonly ends: boolean } | undefined,
  all: string,
  tracked: number | true,
  asNumber: boolean,
): string | undefined {
  if (tracked === 0) return undefined;
  if (counted !== undefined) {
    const { value, ends } = counted;
    return asNumber ? String(value) : `{"value":${String(value)},"relation":"${ends ? 'eq' : 'gte'}"}`;
  }
  const total = sectionOf(sectionOf(all, 'hits') ?? '{}', 'total');
  return asNumber && total !== undefined ? String((parseAnswer(total) as { value: number }).value) : total;
}

/** A hit with the score that it has after the fusion. */
function scored(
  hit: string,
  score: number,
  rank: number | undefined,
  innerHits: string | undefined,
  explanation: string | undefined,
): string {
  return object([
    ...membersOf(hit).flatMap((member) => {
      if (member.name !== '_score') return [`${JSON.stringify(member.name)}:${rawOf(hit, member)}`];
      return [`"_score":${shortest(score)}`, ...(rank === undefined ? [] : [`"_rank":${String(rank)}`])];
    }),
    ...(innerHits === undefined ? [] : [`"inner_hits":${innerHits}`]),
    ...(explanation === undefined ? [] : [`"_explanation":${explanation}`]),
  ]);
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
