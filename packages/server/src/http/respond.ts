import { EngineError } from '@sparrow-search/engine';

import { HttpError, RoutingError } from '../errors.js';
import { compact, filterPath, parseJson, pretty } from './json-text.js';
import { JSON_TYPE, TEXT_TYPE, negotiate } from './media-types.js';

/** An answer before it becomes a `Response`. */
export interface Answer {
  readonly status: number;
  readonly body: Uint8Array | string | null;
  readonly type?: 'json' | 'text' | 'html';
  readonly headers?: readonly (readonly [string, string])[];
}

/** What of the request shapes every answer to it. */
export interface Presentation {
  readonly accept: string | undefined;
  readonly contentType: string | undefined;
  readonly query: Readonly<Record<string, string>>;
}

export function json(status: number, body: object): Answer {
  return { status, body: JSON.stringify(body) };
}

/** Turns anything thrown into an answer; undefined for what is nobody's refusal but a fault of ours. */
export function answerToError(error: unknown): Answer | undefined {
  if (error instanceof EngineError) return { status: error.status, body: error.body };
  if (error instanceof HttpError) {
    return { ...json(error.status, error.toJson()), headers: error.details.headers ?? [] };
  }
  if (error instanceof RoutingError) return { ...json(error.status, error.toJson()), headers: error.headers };
  return undefined;
}

/** Applies `pretty`, `filter_path` and the media type, and makes the `Response`. */
export function toResponse(answer: Answer, { accept, contentType, query }: Presentation): Response {
  const headers = new Headers();
  for (const [name, value] of answer.headers ?? []) headers.append(name, value);
  const type = answer.type ?? 'json';
  let { body } = answer;
  if (type === 'json') {
    headers.set('Content-Type', jsonType(accept, contentType));
    body = present(body, query);
  } else {
    headers.set('Content-Type', type === 'text' ? TEXT_TYPE : 'text/html; charset=UTF-8');
  }
  return new Response(body as string | Uint8Array<ArrayBuffer> | null, { status: answer.status, headers });
}

function present(body: Answer['body'], query: Presentation['query']): Answer['body'] {
  const filter = query['filter_path'];
  const isPretty = query['pretty'] !== undefined && query['pretty'] !== 'false';
  if (body === null || body.length === 0 || (filter === undefined && !isPretty)) return body;
  const whole = parseJson(typeof body === 'string' ? body : new TextDecoder().decode(body));
  const filtered = filter === undefined ? whole : filterPath(whole, filter);
  return isPretty ? pretty(filtered) : compact(filtered);
}

/** An error about the `Accept` header itself must still be sent in some type. */
function jsonType(accept: string | undefined, contentType: string | undefined): string {
  try {
    return negotiate(accept, contentType).json;
  } catch {
    return JSON_TYPE;
  }
}
