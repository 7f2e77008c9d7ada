import { HttpError, millisOf } from '@sparrow-search/endpoints';

import { carryOutInEngine } from '../handlers/engine.js';
import type { Exchange } from '../exchange/exchange.js';
import { type Answer, beginning, isSet, json } from '../exchange/respond.js';
import { type Call, endpointOf, serving } from '../middleware/call.js';
import { refusal } from '../middleware/on-error.js';
import { rightsFor } from '../security/authorize.js';
import { rootOf } from '../security/key-store.js';
import type { AsyncSearch, Holder } from './async-searches.js';

const SECOND = 1000;
const DAY = 24 * 60 * 60 * SECOND;

/** How long a search is kept at least and at most, and where nothing is said. */
const LEAST_KEPT = SECOND;
const MOST_KEPT = 30 * DAY;
const KEPT = 5 * DAY;

/** For how long a request waits where nothing is said, and at most: a timer takes no more. */
const WAIT = SECOND;
const MOST_WAIT = DAY;

/** Starts a search, and answers when it has ended, or after a while without it. */
export async function submitAsyncSearch(call: Call): Promise<Answer> {
  const { wait_for_completion_timeout: wait, keep_alive: kept, keep_on_completion: keeps, ...query } = call.query;
  const keepAlive = keptFor(kept) ?? KEPT;
  const limit = wait === undefined ? WAIT : millisOf(wait);
  call.query = query;
  const { asyncSearches, inFlight } = call.application;
  const waiting: { isOver: boolean; failure?: Error } = { isOver: false };
  const search = asyncSearches.start({
    holder: holderOf(call),
    keepAlive,
    hold: inFlight.request(),
    bodyBytes: call.body?.length ?? 0,
    run: async (cancel) => {
      try {
        return await carryOutInEngine(call, endpointOf(call), 'search', cancel);
      } catch (error) {
        // While the first request still waits, the error is its answer; later it is kept as the result of the search.
        if (waiting.isOver) return refusal(call, error);
        waiting.failure = error instanceof Error ? error : new Error(String(error));
        return { status: 500, body: null };
      }
    },
  });
  const isHere = await waited(search, limit, call.exchange);
  if (!isHere) {
    // The client was never told the id of this search, and nobody else may ask for it.
    asyncSearches.end(search);
    throw new HttpError('client_closed', 'the client went away before the search had an id');
  }
  waiting.isOver = true;
  if (waiting.failure !== undefined) {
    asyncSearches.end(search);
    throw waiting.failure;
  }
  if (search.outcome === undefined || isSet(keeps)) return shown(search, true, query);
  const answer = shown(search, false, query);
  asyncSearches.end(search);
  return answer;
}

/** Shows a search, and waits for its end for as long as it is told to. */
export async function getAsyncSearch(call: Call): Promise<Answer> {
  const { wait_for_completion_timeout: wait, keep_alive: kept, ...query } = call.query;
  const keepAlive = keptFor(kept);
  const search = call.application.asyncSearches.get(call.path['id'] ?? '', holderOf(call));
  if (keepAlive !== undefined) search.expires = Date.now() + keepAlive;
  if (wait !== undefined) await waited(search, millisOf(wait), call.exchange);
  // It may have been deleted meanwhile.
  if (search.isGone) throw new HttpError('not_found', search.id);
  return shown(search, true, query);
}

/** Shows how a search is, without its result. */
export function asyncSearchStatus(call: Call): Answer {
  const search = call.application.asyncSearches.get(call.path['id'] ?? '', holderOf(call));
  const { outcome } = search;
  return json(200, {
    ...headOf(search, true),
    _shards: outcome === undefined ? NO_SHARDS : shardsOf(outcome.answer),
    ...(outcome === undefined ? {} : { completion_status: outcome.answer.status }),
  });
}

/** Deletes a search, and stops it if it runs. */
export function deleteAsyncSearch(call: Call): Answer {
  const { asyncSearches } = call.application;
  asyncSearches.end(asyncSearches.get(call.path['id'] ?? '', holderOf(call)));
  return json(200, { acknowledged: true });
}

function holderOf(call: Call): Holder {
  const { caller } = serving(call);
  return { key: caller.id, root: rootOf(caller), rights: rightsFor(caller, endpointOf(call)).rights };
}

/** Waits for the end of a search. Says whether the client is still there. */
function waited(search: AsyncSearch, limit: number, exchange: Exchange): Promise<boolean> {
  return new Promise((resolve) => {
    const over = (isHere: boolean): void => {
      clearTimeout(timer);
      stay();
      resolve(isHere);
    };
    const timer = setTimeout(over, limit < 0 ? MOST_WAIT : Math.min(limit, MOST_WAIT), true);
    let isGone = false;
    let stay = (): void => undefined;
    stay = exchange.onGone(() => {
      isGone = true;
      over(false);
    });
    void search.ended.then(() => {
      if (!isGone) over(true);
    });
  });
}

/** What is said of a search in every answer. */
function headOf(search: AsyncSearch, hasId: boolean): object {
  const { id, started, expires, outcome } = search;
  return {
    ...(hasId ? { id } : {}),
    is_partial: outcome === undefined || isPartial(outcome.answer),
    is_running: outcome === undefined,
    start_time_in_millis: started,
    expiration_time_in_millis: expires,
    ...(outcome === undefined ? {} : { completion_time_in_millis: outcome.completed }),
  };
}

/** Bytes of an answer that hold all that stands before its hits. */
const BEFORE_HITS = 300;

const NO_SHARDS = { total: 0, successful: 0, skipped: 0, failed: 0 };

function shown(search: AsyncSearch, hasId: boolean, query: Readonly<Record<string, string>>): Answer {
  const head = headOf(search, hasId);
  const { outcome } = search;
  if (outcome === undefined) {
    const isNumber = isSet(query['rest_total_hits_as_int']);
    const hits = { total: isNumber ? 0 : { value: 0, relation: 'gte' }, max_score: null, hits: [] };
    const response = { took: Date.now() - search.started, timed_out: false, _shards: NO_SHARDS, hits };
    return json(200, { ...head, response });
  }
  const { status, body, headers = [] } = outcome.answer;
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0));
  if (status >= 400) {
    const { error } = JSON.parse(Buffer.from(bytes).toString()) as { readonly error: unknown };
    return { ...json(status, { ...head, error, status }), headers };
  }
  const before = Buffer.from(`${JSON.stringify(head).slice(0, -1)},"response":`);
  return { status, body: Buffer.concat([before, bytes, Buffer.from('}')]), headers };
}

/** Whether a search has ended without all that it looked for: by an error, after its timeout, or with shards that failed. */
function isPartial(answer: Answer): boolean {
  return (
    answer.status >= 400 ||
    beginning(answer.body, BEFORE_HITS).includes('"timed_out":true') ||
    shardsOf(answer).failed > 0
  );
}

function shardsOf(answer: Answer): typeof NO_SHARDS {
  const found = /"_shards":(\{"total":\d+,"successful":\d+,"skipped":\d+,"failed":\d+)/.exec(
    beginning(answer.body, BEFORE_HITS),
  )?.[1];
  return found === undefined ? NO_SHARDS : (JSON.parse(`${found}}`) as typeof NO_SHARDS);
}

/** @throws {HttpError} 400 for a time that is too short or too long */
function keptFor(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const kept = millisOf(text);
  if (kept >= LEAST_KEPT && kept <= MOST_KEPT) return kept;
  throw new HttpError('illegal_argument', `[keep_alive] must be from [1s] to [30d], got: ${text}`);
}
