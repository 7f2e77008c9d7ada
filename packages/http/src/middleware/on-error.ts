import { HttpError, SPARSE_PATH, isOpenAiPath } from '@sparrow-search/endpoints';
import { EngineError, SparrowError } from '@sparrow-search/engine';

import { type Answer, answerToError, json, typeOf } from '../exchange/respond.js';
import { answeredIn, spokenBy } from '../exchange/versions.js';
import { inOpenAiForm, inSparseForm } from '../openai/errors.js';
import type { Call } from './call.js';
import { namesOf } from './request-log.js';

/** Statuses that say that no work was done for a request. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 413, 429, 503]);

/**
 * Errors with status 500 that are mostly mistakes of callers, for whom the original has no better status: an index that a restore
 * finds open, a type or place of a repository that cannot be, an alias with two write indices. What the disk refuses has a line of its own.
 */
const CALLERS_MISTAKES: ReadonlySet<string> = new Set([
  'repository_exception',
  'snapshot_restore_exception',
  'illegal_state_exception',
]);

/** What is answered when a step throws: the answer to its error. Needs nothing, adds nothing. */
export function onError(call: Call, error: unknown): Answer {
  const answer = answeredIn(spokenBy(call.exchange), refusal(call, error));
  if (REFUSALS.has(answer.status)) call.application.instruments.requests.rejected(answer.status, nameOf(error));
  return answer;
}

/** An error in the form of the interface that was called; a fault of the server is logged. */
export function refusal(call: Call, error: unknown): Answer {
  const known = answerToError(error);
  // A client that polls until the server is ready makes no mistake; `debug` has a line for every request.
  const isExpected = error instanceof HttpError && error.code === 'starting';
  if ((known === undefined || known.status >= 500) && !isExpected) {
    const isCallers = known?.status === 500 && CALLERS_MISTAKES.has(nameOf(error));
    call.application.log[isCallers ? 'warn' : 'error']('request failed', {
      ...namesOf(call),
      status: known?.status ?? 500,
      error: described(error),
    });
  }
  const answer = known ?? json(500, new HttpError('internal', 'an internal error; see the log').toJson());
  const path = call.route?.path ?? call.exchange.path;
  if (path === SPARSE_PATH) return inSparseForm(answer);
  return isOpenAiPath(path) ? inOpenAiForm(answer) : answer;
}

/** What went wrong, for the log: the reason where the engine gave one, with the place in the code where it is a fault of the server. */
function described(error: unknown): string {
  if (error instanceof EngineError) return error.reason;
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}

/** The type of an error as its body names it; empty where it has none. */
function nameOf(error: unknown): string {
  if (error instanceof HttpError || error instanceof SparrowError) return error.type;
  return (error instanceof EngineError ? typeOf(error) : undefined) ?? '';
}
