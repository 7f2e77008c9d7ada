import { EngineError } from '@sparrow-search/engine';

import { HttpError, RoutingError } from '../errors.js';
import { type Exchange, type Finished, parametersOf } from './exchange.js';
import { compact, filterPath, parseJson, pretty } from './json-text.js';
import { JSON_TYPE, TEXT_TYPE, negotiate } from './media-types.js';

/** An answer before it is shaped as the request asks. */
export interface Answer {
  readonly status: number;
  readonly body: Uint8Array | string | null;
  readonly type?: 'json' | 'text' | 'html';
  readonly headers?: readonly (readonly [string, string])[];
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

/** Applies `pretty`, `filter_path` and the media type. */
export function finish(answer: Answer, exchange: Exchange, common: readonly (readonly [string, string])[]): Finished {
  const type = answer.type ?? 'json';
  const contentType =
    type === 'json'
      ? jsonType(exchange.header('accept'), exchange.header('content-type'))
      : type === 'text'
        ? TEXT_TYPE
        : 'text/html; charset=UTF-8';
  return {
    status: answer.status,
    headers: [...(answer.headers ?? []), ['Content-Type', contentType], ...common],
    body: type === 'json' ? present(answer.body, parametersOf(exchange.uri)) : answer.body,
  };
}

function present(body: Answer['body'], query: Readonly<Record<string, string>>): Answer['body'] {
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
