import { type ErrorCode, HttpError, RoutingError } from '@sparrow-search/endpoints';
import { type ShapeProblem, EngineError, SparrowError, freeAnswer, shapeAnswer } from '@sparrow-search/engine';

import type { Exchange, Finished } from './exchange.js';
import { RETRY_SECONDS } from './in-flight.js';
import { MadeOnce } from './made-once.js';
import { JSON_TYPE, type Negotiated, TEXT_TYPE, negotiate } from './media-types.js';

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
  /** Whether parts of a request that was carried out were refused. */
  readonly refusedParts?: boolean | undefined;
  /** For an error: the type that its body names. */
  readonly errorType?: string | undefined;
  /** Whether its bytes are those of every answer of its kind: they stay whether it is read or not, and every shape is made once. */
  readonly isShared?: boolean;
  /** Whether room was taken for it already, while it was made. */
  readonly isHeld?: boolean;
  /** For a refusal with 429: whether the same request would be refused later as well. */
  readonly isForGood?: boolean | undefined;
}

export function json(status: number, body: object): Answer {
  return { status, body: JSON.stringify(body) };
}

type Headers = readonly (readonly [string, string])[];

/** Tells a client that was refused for now when to come again, unless its answer does. */
function laterIf({ status, headers = [], isForGood }: Answer): Headers {
  if (status !== 429 || isForGood === true || headers.some(([name]) => name === 'Retry-After')) return headers;
  return [...headers, ['Retry-After', String(RETRY_SECONDS)]];
}

/** The type of an error of the engine, as its body names it. */
export function typeOf({ members: { type } }: EngineError): string | undefined {
  return typeof type === 'string' ? type : undefined;
}

/** Turns anything thrown into an answer; undefined for an error that is no refusal but a fault of the server. */
export function answerToError(error: unknown): Answer | undefined {
  if (error instanceof EngineError) {
    const isForGood = error.members['durability'] === 'PERMANENT';
    return { status: error.status, body: error.body, errorType: typeOf(error), isForGood };
  }
  // Of an engine that the server itself asks as a library does.
  if (error instanceof SparrowError) {
    const { status, type, reason } = error;
    return { ...json(status, { error: { root_cause: [{ type, reason }], type, reason }, status }), errorType: type };
  }
  if (error instanceof HttpError) {
    const { headers = [], metadata = {} } = error.details;
    return { ...json(error.status, error.toJson()), headers, isForGood: metadata['durability'] === 'PERMANENT' };
  }
  if (error instanceof RoutingError) return { ...json(error.status, error.toJson()), headers: error.headers };
  return undefined;
}

/**
 * Applies `pretty`, `filter_path`, `human`, `error_trace` and the media type.
 *
 * @param room bytes that the engine may still allocate
 * @throws {HttpError} 400 when the paths of `filter_path` take too long on this answer or it may have none, or laid out it would be too long
 */
export function finish(
  answer: Answer,
  exchange: Exchange,
  query: Readonly<Record<string, string>>,
  common: readonly (readonly [string, string])[],
  room: () => number = () => Infinity,
): Finished | Promise<Finished> {
  const type = answer.type ?? 'json';
  const headers = laterIf(answer);
  const shared = answer.isShared === true ? { isShared: true } : {};
  if (type !== 'json') {
    const contentType = answer.contentType ?? (type === 'text' ? TEXT_TYPE : 'text/html; charset=UTF-8');
    return {
      status: answer.status,
      headers: [...headers, ['Content-Type', contentType], ...common],
      body: answer.body,
      ...shared,
    };
  }
  const wanted = wantedType(exchange, query);
  const finished = (body: Answer['body']): Finished => ({
    status: answer.status,
    headers: [...headers, ['Content-Type', wanted.type], ...common],
    body,
    ...shared,
  });
  const body = shaped(answer, exchange, query, wanted, room);
  return body instanceof Promise ? body.then(finished) : finished(body);
}

/** How a request is refused whose answer cannot have the shape that it wants. */
const REFUSALS: Readonly<Record<ShapeProblem, [ErrorCode, string]>> = {
  tooMuchWork: [
    'illegal_argument',
    '[filter_path] takes too long on this answer: use fewer paths, or ones with fewer wildcards',
  ],
  tooLong: ['illegal_argument', 'the answer is too long to be laid out: ask for it without [pretty], as JSON'],
  noRoom: ['rejected', 'rejected execution: there is no memory left to lay out the answer'],
};

/** The body of an answer in the shape that the request wants. Never on the event loop: it takes time in proportion. */
function shaped(
  { status, body, statistics, isShared }: Answer,
  exchange: Exchange,
  query: Readonly<Record<string, string>>,
  { kind }: Negotiated,
  room: () => number,
): Answer['body'] | Promise<Answer['body']> {
  // As in Elasticsearch, an error is told whole: a client that asked for [hits.total] has to hear why there are no hits.
  const filter = isError(status, body) ? undefined : query['filter_path'];
  const isPretty = isSet(query['pretty']);
  const isTraced = status >= 400 && isSet(query['error_trace']);
  const isHuman = statistics === true && isSet(query['human']);
  const asItIs = filter === undefined && !isPretty && !isTraced && !isHuman && kind === 'json';
  if (body === null || body.length === 0 || asItIs) return body;
  if (isShared === true && typeof body !== 'string') {
    if (filter !== undefined) throw new HttpError('illegal_argument', UNFILTERED);
    return sharedShape(body, isPretty, kind === 'yaml');
  }
  const left = room();
  return shapedAs(body, {
    ...(filter === undefined ? {} : { filter_path: filter }),
    ...(isTraced ? { trace: `${exchange.method} ${exchange.path}` } : {}),
    pretty: isPretty,
    human: isHuman,
    yaml: kind === 'yaml',
    ...(Number.isFinite(left) ? { room: Math.max(left, 0) } : {}),
  });
}

const UNFILTERED = '[filter_path] cannot be used here, as no key is needed: ask for the whole answer';

/** The shapes of bytes that answers share. */
const sharedShapes = new MadeOnce<string>();

/**
 * JSON that answers share, laid out or as YAML. Each shape is made once: these answers need no key, and strangers would otherwise keep the
 * server busy with making them.
 *
 * @throws {HttpError} 400 when it would be too long
 */
function sharedShape(body: Uint8Array, pretty: boolean, yaml: boolean): Promise<Uint8Array> {
  return sharedShapes.of(body, `${pretty ? 'pretty' : ''} ${yaml ? 'yaml' : ''}`, async () => {
    const shown = await shapeAnswer(body, { pretty, human: false, yaml });
    if (typeof shown === 'string') throw new HttpError(...REFUSALS[shown]);
    const copied = Buffer.from(shown);
    freeAnswer(shown);
    return copied;
  });
}

async function shapedAs(
  body: Uint8Array | string,
  shape: Parameters<typeof shapeAnswer>[1],
): Promise<Uint8Array | string> {
  const shown = await shapeAnswer(typeof body === 'string' ? Buffer.from(body) : body, shape);
  if (typeof body !== 'string') freeAnswer(body);
  if (typeof shown === 'string') throw new HttpError(...REFUSALS[shown]);
  return shown;
}

/** Whether an answer is an error, rather than one that says for example that a document or an alias of several is missing. */
function isError(status: number, body: Answer['body']): boolean {
  return status >= 400 && beginning(body, 10) === '{"error":{';
}

/** The first characters of a body, of which so many bytes are read. */
export function beginning(body: Answer['body'], bytes: number): string {
  return body === null ? '' : Buffer.from(body.slice(0, bytes)).toString();
}

/** Whether a switch of the query string is on: it is when it has no value, too. */
export function isSet(value: string | undefined): boolean {
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
