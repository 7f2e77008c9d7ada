import { EngineError } from '@sparrow-search/engine';

import { HttpError, RoutingError } from '../errors.js';
import type { Exchange, Finished } from './exchange.js';
import { readable } from './human.js';
import { type Json, compact, filterPath, parseJson, pretty } from './json-text.js';
import { JSON_TYPE, type Negotiated, TEXT_TYPE, negotiate } from './media-types.js';
import { withTraces } from './trace.js';
import { toYaml } from './yaml.js';

/** An answer before it is shaped as the request asks. */
export interface Answer {
  readonly status: number;
  readonly body: Uint8Array | string | null;
  readonly type?: 'json' | 'text' | 'html';
  /** The media type of a text that is no plain one. */
  readonly contentType?: string;
  readonly headers?: readonly (readonly [string, string])[];
  /** Whether sizes and times are shown for people as well, if the request asks for that. */
  readonly statistics?: boolean;
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

/** Applies `pretty`, `filter_path`, `human`, `error_trace` and the media type. */
export function finish(
  answer: Answer,
  exchange: Exchange,
  query: Readonly<Record<string, string>>,
  common: readonly (readonly [string, string])[],
): Finished {
  const type = answer.type ?? 'json';
  const headers = answer.headers ?? [];
  if (type !== 'json') {
    const contentType = answer.contentType ?? (type === 'text' ? TEXT_TYPE : 'text/html; charset=UTF-8');
    return {
      status: answer.status,
      headers: [...headers, ['Content-Type', contentType], ...common],
      body: answer.body,
    };
  }
  const wanted = wantedType(exchange, query);
  return {
    status: answer.status,
    headers: [...headers, ['Content-Type', wanted.type], ...common],
    body: present(answer, exchange, query, wanted),
  };
}

function present(
  { status, body, statistics }: Answer,
  exchange: Exchange,
  query: Readonly<Record<string, string>>,
  { kind }: Negotiated,
): Answer['body'] {
  const filter = query['filter_path'];
  const isPretty = isSet(query['pretty']);
  const isTraced = status >= 400 && isSet(query['error_trace']);
  const isHuman = statistics === true && isSet(query['human']);
  const asItIs = filter === undefined && !isPretty && !isTraced && !isHuman && kind === 'json';
  if (body === null || body.length === 0 || asItIs) return body;
  let shown: Json = parseJson(typeof body === 'string' ? body : new TextDecoder().decode(body));
  if (isTraced) shown = withTraces(shown, `${exchange.method} ${exchange.path}`);
  if (isHuman) shown = readable(shown);
  if (filter !== undefined) shown = filterPath(shown, filter);
  if (kind === 'yaml') return toYaml(shown);
  return isPretty ? pretty(shown) : compact(shown);
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== 'false';
}

/** An error about the `Accept` header itself must still be sent in some type. */
function wantedType(exchange: Exchange, query: Readonly<Record<string, string>>): Negotiated {
  try {
    return negotiate(exchange.header('accept'), exchange.header('content-type'), query['format']);
  } catch {
    return { type: JSON_TYPE, kind: 'json', explicit: false };
  }
}
