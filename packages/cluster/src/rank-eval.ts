import { type Cancel, EngineError, type EngineReply, type EngineRequest } from '@sparrow-search/engine';

import { illegal, notOverCluster, unparsable } from './errors.js';
import { hitSpans } from './hits.js';
import {
  type Edit,
  type Json,
  decode,
  edited,
  elements,
  isObject,
  members,
  parseRequest,
  rawOf,
  whole,
} from './json.js';
import { targetOf } from './multiple.js';
import { encodeExpression } from './names.js';
import { keyIn, listOf, scoredAs } from './ranked-hits.js';
import { replyOf, stoppable } from './replies.js';
import { type Searching, inTurn, search } from './search.js';

/** Hits of each list that a metric looks at where it does not say so. */
const DEFAULT_K = 10;
/** Most of them over a cluster, which is told the order of a list by a clause for each hit. */
const MOST_HITS = 1000;
/** Most searches of one request; the native engine has the same. */
const MOST_SEARCHES = 10_000;

/** Sections of a search that have nothing to do with ranking, in the words of the native engine. */
const FOREIGN = {
  suggest: 'contain a suggest section.',
  aggs: 'contain aggregations.',
  aggregations: 'contain aggregations.',
  highlight: 'contain a highlighter section.',
  explain: 'use explain.',
  profile: 'use profile.',
} as const;

/** A search that is judged, and its answer. */
interface Judged {
  readonly id: string;
  readonly rated: Json;
  readonly answer: { readonly text: string } | { readonly failed: unknown };
}

/**
 * Answers `_rank_eval`. Each search is carried out as if it had come alone; the cluster measures the lists, as it would those of a search
 * of its own, by a query that finds the same hits in the same order.
 */
export async function rankEval(
  context: Searching,
  request: EngineRequest,
  body: Uint8Array | undefined,
  cancel?: Cancel,
): Promise<EngineReply> {
  if (body === undefined || body.length === 0) throw unparsable('request body is required');
  const given = parseRequest(decode(body));
  if (!isObject(given)) throw unparsable('Expected [START_OBJECT] at the beginning of a [rank_eval]');
  const { requests, templates, ...rest } = given;
  if (Array.isArray(templates) && templates.length > 0) throw illegal('[templates] are not supported by this server');
  const k = hitsOf(rest['metric']);
  const all = Array.isArray(requests) ? (requests as unknown[]) : [];
  if (all.length > MOST_SEARCHES)
    throw illegal(`[requests] has [${String(all.length)}] searches, more than the limit of [${String(MOST_SEARCHES)}]`);
  const searches = all.map((one) => searchOf(one, k));
  const expression = await context.names.expression(request, request.path['index']);
  const judged = await inTurn(searches, async ({ id, rated, body: sent }): Promise<Judged> => {
    try {
      const reply = await search(context, { ...request, op: 'search' }, Buffer.from(sent), cancel);
      const text = Buffer.from(reply.body).toString();
      return { id, rated, answer: reply.status === 200 ? { text } : { failed: failureIn(text) } };
    } catch (error) {
      if (!(error instanceof EngineError) || error.status === 403) throw error;
      return { id, rated, answer: { failed: failureIn(Buffer.from(error.body).toString()) } };
    }
  });
  const missing = judged.find(
    ({ answer }) => 'failed' in answer && typeOf(answer.failed) === 'index_not_found_exception',
  );
  // What may not be searched at all fails the request, and not each search of it.
  if (missing !== undefined && 'failed' in missing.answer)
    throw new EngineError(404, Buffer.from(JSON.stringify({ error: missing.answer.failed, status: 404 })));
  const failures = Object.fromEntries(
    judged.flatMap(({ id, answer }) => ('failed' in answer ? [[id, { error: answer.failed }]] : [])),
  );
  const found = judged.flatMap(({ id, rated, answer }) => ('text' in answer ? [{ id, rated, text: answer.text }] : []));
  if (expression === undefined || (found.length === 0 && judged.length > 0))
    return { status: 200, body: Buffer.from(JSON.stringify({ metric_score: null, details: {}, failures })) };
  const asked = { ...rest, requests: found.map(({ id, rated, text }) => ({ ...rated, id, request: sameHits(text) })) };
  const answered = await stoppable(cancel, (signal) =>
    context.transport.ask({
      method: 'POST',
      path: `/${encodeExpression(expression)}/_rank_eval`,
      query: targetOf(request.query),
      body: JSON.stringify(asked),
      signal,
      repeatable: true,
    }),
  );
  if (answered.status !== 200) return replyOf(answered);
  const texts = new Map(found.map(({ id, text }) => [id, text]));
  return { status: 200, body: Buffer.from(withHits(answered.body.toString(), texts, failures)) };
}

/** How many hits a metric looks at. */
function hitsOf(metric: unknown): number {
  if (metric === undefined) throw illegal('Cannot evaluate ranking if no evaluation metric is provided.');
  const [options] = isObject(metric) ? Object.values(metric) : [];
  const k = isObject(options) ? (options['k'] ?? DEFAULT_K) : DEFAULT_K;
  // What is no number of hits is refused by the cluster.
  if (typeof k !== 'number' || !Number.isInteger(k) || k < 1) return DEFAULT_K;
  if (k > MOST_HITS) throw notOverCluster(`a metric of more than [${String(MOST_HITS)}] hits`);
  return k;
}

/** One of the `requests`: the body of its search, and what else it says. */
function searchOf(given: unknown, k: number): { readonly id: string; readonly rated: Json; readonly body: string } {
  if (!isObject(given)) throw unparsable('[rank_eval] failed to parse field [requests]');
  const { id, request, summary_fields: summary, template_id: template, params, ...rated } = given;
  if (typeof id !== 'string') throw illegal('Required [id]');
  if (template !== undefined || params !== undefined)
    throw illegal(`[template_id] and [params] of request [${id}] are not supported by this server`);
  if (!isObject(request)) throw illegal('Either template_id or request must be specified in the request');
  for (const [name, problem] of Object.entries(FOREIGN)) {
    if (![undefined, null, false].includes(request[name] as null))
      throw illegal(`Query in rated requests should not ${problem}`);
  }
  const shown = Array.isArray(summary) && summary.length > 0 ? (summary as unknown[]) : false;
  const body = JSON.stringify({ ...request, size: k, _source: shown, track_total_hits: false });
  return { id, rated, body };
}

/** A search that finds the hits of an answer, in their order. */
function sameHits(answer: string): Json {
  const hits = listOf(answer);
  return { query: scoredAs(hits.map(({ key }, at) => ({ key, score: hits.length - at }))) };
}

function failureIn(text: string): unknown {
  return (JSON.parse(text) as { readonly error?: unknown }).error;
}

function typeOf(error: unknown): unknown {
  return isObject(error) ? error['type'] : undefined;
}

/** The cluster's answer with the hits as the searches show them, and with the searches that failed before it was asked. */
function withHits(text: string, answers: ReadonlyMap<string, string>, failures: Json): string {
  const inside = (at: number, name: string) => members(text, at).find((it) => it.name === name);
  const top = whole(text).start;
  const details = inside(top, 'details');
  const edits = (details === undefined ? [] : members(text, details.start)).flatMap((one): Edit[] => {
    const answer = answers.get(one.name) ?? '';
    const shown = new Map(hitSpans(answer).map((span) => [keyIn(answer, span.start), rawOf(answer, span)]));
    const hits = inside(one.start, 'hits');
    return (hits === undefined ? [] : elements(text, hits.start)).flatMap(({ start }): Edit[] => {
      const hit = inside(start, 'hit');
      const own = hit === undefined ? undefined : shown.get(keyIn(text, hit.start));
      return hit === undefined || own === undefined ? [] : [{ start: hit.start, end: hit.end, text: own }];
    });
  });
  const failed = inside(top, 'failures');
  if (failed !== undefined && Object.keys(failures).length > 0) {
    const all = { ...failures, ...(JSON.parse(rawOf(text, failed)) as Json) };
    edits.push({ start: failed.start, end: failed.end, text: JSON.stringify(all) });
  }
  return edited(text, edits);
}
