import { type Cancel, EngineError, type EngineReply, type EngineRequest, unterminated } from '@sparrow-search/engine';

import { illegal, refusal } from './errors.js';
import { mayNameIndices } from './foreign-indices.js';
import { fused } from './fused.js';
import { type Member, type Span, decode, edited, isObject, members, parse, textOf, valueOf, whole } from './json.js';
import { ofSearch } from './left-out-vectors.js';
import { OF_TARGET } from './multiple.js';
import { encodeExpression } from './names.js';
import { inPointInTime, withShownId } from './points-in-time.js';
import { type ReadingContext, readSearch } from './reading.js';
import { replyOf, stoppable, withWarnings } from './replies.js';
import type { Seals } from './seals.js';
import type { SearchBody } from './search-body.js';
import { withBestPassages } from './semantic-highlight.js';
import { withFieldNames } from './semantic-names.js';
import type { Answered } from './transport.js';

/** What a search needs of its surroundings. */
export type Searching = ReadingContext & { readonly seals: Seals };

/** Names that a body has to hold for anything in it to be translated. */
const TRANSLATED =
  /"(?:text_expansion|weighted_tokens|sparse_vector|semantic|rule|pinned|knn|script_score|sub_searches|rank|retriever)"/;

/** What the header of a search says besides its indices. */
const OF_HEADER: ReadonlySet<string> = new Set([
  ...[...OF_TARGET, 'request_cache', 'allow_partial_search_results', 'ccs_minimize_roundtrips'],
]);

/** Most searches of one `_msearch`, and how many of them are asked for at once: as many as a node has connections. */
const MOST_SEARCHES = 10_000;
const SEARCHES_AT_ONCE = 64;

/** Operations whose body is a search or a query, and where they go. */
export const SEARCHES = {
  search: '_search',
  count: '_count',
  validate_query: '_validate/query',
} as const;

/** Answers `_search`, `_count` and `_validate/query`. */
export async function search(
  context: Searching,
  wanted: EngineRequest,
  body: Uint8Array | undefined,
  cancel?: Cancel,
): Promise<EngineReply> {
  const endpoint = SEARCHES[wanted.op as keyof typeof SEARCHES];
  const restricted = wanted.rights !== undefined;
  const given = body === undefined || body.length === 0 ? undefined : decode(body);
  const view = wanted.op === 'search' ? inPointInTime(given) : undefined;
  // The cluster itself refuses a request that names indices beside a point in time.
  const named = wanted.path['index'] === '' ? undefined : wanted.path['index'];
  const expression = await context.names.expression(wanted, named ?? view?.expression);
  if (view !== undefined) await context.seals.opened(wanted, view.shown);
  if (expression === undefined) return nothing(wanted);
  return stoppable(cancel, async (signal) => {
    const path =
      view === undefined || named !== undefined ? `/${encodeExpression(expression)}/${endpoint}` : '/_search';
    const { query, text } = await ofSearch(context.vectors, expression, wanted, view?.text ?? given);
    const opened = (id: string): Promise<string> => context.seals.shown(view?.expression ?? expression, id);
    const inView = async (reply: EngineReply): Promise<EngineReply> => {
      if (view !== undefined) return withShownId(reply, 'pit_id', opened);
      return restricted && 'scroll' in request.query ? withShownId(reply, '_scroll_id', opened) : reply;
    };
    const request = { ...wanted, query };
    const isPlain = text !== undefined && !TRANSLATED.test(text) && !mayNameIndices(text);
    if (text === undefined || (!restricted && isPlain && (await context.semantic.of(expression)) === undefined)) {
      return inView(replyOf(await ask(context, request, path, text, signal)));
    }
    const read = await readSearch(context, request, expression, text, cancel, request.op === 'search');
    const isAbout = read.value('explain') === true || read.value('profile') === true || 'explain' in request.query;
    const highlighted = (reply: EngineReply) => withHighlights(context, expression, read, reply, cancel);
    const shown = async (reply: EngineReply): Promise<EngineReply> =>
      withWarnings(isAbout ? withFieldNames(await context.semantic.of(expression), reply) : reply, read.warnings);
    if (read.fusion === undefined) {
      const answered = await ask(context, request, path, read.translated(), signal);
      return shown(await highlighted(atMost(read.mostHits, await inView(replyOf(answered)))));
    }
    if (request.op !== 'search')
      throw illegal(`request does not support [${read.fusion.form === 'rank' ? 'rank' : 'retriever'}]`);
    return shown(
      await inView(await fused(context, request, expression, read, read.fusion, highlighted, signal, cancel)),
    );
  });
}

/** Adds passages to the hits of a search that asks for them. */
async function withHighlights(
  context: Searching,
  expression: string,
  read: SearchBody,
  reply: EngineReply,
  cancel?: Cancel,
): Promise<EngineReply> {
  const { highlightedPassages: section } = read;
  const known = section === undefined ? undefined : await context.semantic.of(expression);
  if (section === undefined || known === undefined) return reply;
  return withBestPassages(context, known, read.highlightedBy, section, reply, cancel);
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
  const pairs = Array.from({ length: lines.length / 2 }, (_, at) => lines.slice(2 * at, 2 * at + 2));
  const answers = await inTurn(pairs, async ([first = '', one = '{}']) => {
    const header = parse(first.trim() === '' ? '{}' : first);
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

/** @throws {EngineError} 400 for a last line that does not end, and for more searches than one request may have, before any is looked at */
function checkLines(body: Uint8Array): void {
  if (body.length > 0 && body.at(-1) !== 0x0a) throw illegal(unterminated('msearch', body));
  let lines = 0;
  for (let at = body.indexOf(0x0a); at >= 0; at = body.indexOf(0x0a, at + 1)) {
    lines += 1;
    if (lines > 2 * MOST_SEARCHES) {
      throw illegal(`an _msearch over a cluster may have at most [${String(MOST_SEARCHES)}] searches`);
    }
  }
}

/** Does a piece of work for each item, some at once; what they give comes in their order. None is begun after one that failed. */
export async function inTurn<I, T>(items: readonly I[], work: (item: I) => Promise<T>): Promise<readonly T[]> {
  const done: T[] = [];
  const left = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (hasFailed) return;
      try {
        done[at] = await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(items.length, SEARCHES_AT_ONCE) }, worker));
  return done;
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

/** An answer whose number of hits is no higher than there are. */
function atMost(most: number | undefined, reply: EngineReply): EngineReply {
  if (most === undefined || reply.status !== 200) return reply;
  const text = Buffer.from(reply.body).toString();
  const inside = (name: string, of: Span | undefined): Member | undefined =>
    of === undefined ? undefined : members(text, of.start).find((it) => it.name === name);
  const total = inside('total', inside('hits', whole(text)));
  const value = inside('value', total);
  if (total === undefined || value === undefined || Number(valueOf(text, value)) <= most) return reply;
  const edit = { start: total.start, end: total.end, text: `{"value":${String(most)},"relation":"eq"}` };
  return { ...reply, body: Buffer.from(edited(text, [edit])) };
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
