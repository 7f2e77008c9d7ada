import { type ErrorDetails, HttpError } from '@sparrow-search/endpoints';

import type { Answer } from '../exchange/respond.js';

/** What clients know errors by, besides their status. */
const KINDS: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['permission_error', 'insufficient_permissions'],
  413: ['invalid_request_error', 'request_too_large'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
};

/**
 * The refusal of a value in a body of these interfaces.
 *
 * @param param where it is, such as `input[3]`
 */
export function refused(param: string, reason: string): HttpError {
  return new HttpError('illegal_argument', `${param}: ${reason}`, about(param));
}

/** The refusal of a model that there is not. */
export function modelNotFound(reason: string): HttpError {
  return new HttpError('not_found', reason, about('model', 'model_not_found'));
}

function about(param: string, code?: string): ErrorDetails {
  return { metadata: { param, ...(code === undefined ? {} : { code }) } };
}

/** An answer as these clients read it: whatever refuses has OpenAI's form, and keeps its status and headers. */
export function inOpenAiForm(answer: Answer): Answer {
  const { status, body } = answer;
  if (status < 400 || body === null || body.length === 0) return answer;
  const { message, param, code } = said(typeof body === 'string' ? body : Buffer.from(body).toString());
  const [type, usual] = KINDS[status] ?? [status >= 500 ? 'server_error' : 'invalid_request_error', null];
  return { ...answer, body: JSON.stringify({ error: { message, type, param, code: code ?? usual } }) };
}

/** What clients of text-embeddings-inference know errors by. */
const SPARSE_KINDS: Readonly<Record<number, string>> = { 413: 'validation', 429: 'overloaded' };

/** An answer as clients of text-embeddings-inference read it. */
export function inSparseForm(answer: Answer): Answer {
  const { status, body } = answer;
  if (status < 400 || body === null || body.length === 0) return answer;
  const { message } = said(typeof body === 'string' ? body : Buffer.from(body).toString());
  const kind = SPARSE_KINDS[status] ?? (status >= 500 ? 'backend' : 'validation');
  return { ...answer, body: JSON.stringify({ error: message, error_type: kind }) };
}

interface Said {
  readonly message: string;
  readonly param: string | null;
  readonly code?: string;
}

/** What an error in Elasticsearch's form says. */
function said(text: string): Said {
  const { error } = JSON.parse(text) as {
    readonly error: string | { readonly reason?: string | null; readonly param?: string; readonly code?: string };
  };
  if (typeof error === 'string') return { message: error, param: null };
  const { reason, param = null, code } = error;
  return { message: reason ?? '', param, ...(code === undefined ? {} : { code }) };
}
