import { type Endpoint, HttpError, RoutingError, millisOf } from '@sparrow-search/endpoints';

import type { Place } from '../exchange/admission.js';
import { readBody as read } from '../exchange/body.js';
import type { Sender } from '../exchange/fair-queue.js';
import { kindOfBody, negotiate } from '../exchange/media-types.js';
import { yamlToJson } from '../exchange/yaml.js';
import { type Call, senderOf } from './call.js';

/** Longest body of an operation that the engine does not carry out, in bytes: it is read on the event loop. */
const MAX_LOCAL_BODY = 256 * 1024;

/**
 * Reads the body, as JSON. Needs `query`, adds `body` and to `hold`.
 *
 * @param place is told for how long the body is waited for
 * @throws {HttpError | RoutingError} 400 or 406 for one that the endpoint does not read, 413 for one that is too long, 429 when there is no
 *   room, 408 when it stops coming
 */
export async function readBody(call: Call, endpoint: Endpoint, place: Place | undefined): Promise<void> {
  const { exchange, query, hold, application } = call;
  const { maxBodyBytes } = application.config;
  const limit =
    'local' in endpoint.handler ? Math.min(maxBodyBytes, endpoint.mostBytes ?? MAX_LOCAL_BODY) : maxBodyBytes;
  negotiate(exchange.header('accept'), undefined, query['format']);
  const reading = read(exchange, limit, hold);
  let body;
  try {
    body = await (place?.whileReading(reading) ?? reading);
  } catch (error) {
    throw limit === maxBodyBytes ? withSetting(error) : error;
  }
  if (body === undefined) {
    if (endpoint.body) call.body = await fromSource(call);
    return;
  }
  if (!endpoint.body) {
    throw new HttpError(
      'illegal_argument',
      `request [${exchange.method} ${exchange.path}] does not support having a body`,
    );
  }
  const isYaml = kindOfBody(exchange.header('content-type'), exchange.header('accept')) === 'yaml';
  if (isYaml && endpoint.ndjson === true) {
    throw new RoutingError(406, 'Content-Type [YAML] does not support stream parsing. Use JSON or SMILE instead');
  }
  call.body = isYaml ? await readYaml(call, body) : body;
}

/** Says which setting the limit comes from that a body is too long for. Other limits are those of endpoints. */
function withSetting(error: unknown): unknown {
  if (!(error instanceof HttpError) || error.code !== 'body_too_large') return error;
  const reason = `${error.reason}; send less in one request, or start the server with a larger [--max-body-bytes] (SPARROW_MAX_BODY_BYTES)`;
  return new HttpError('body_too_large', reason, error.details);
}

/**
 * A body in YAML as JSON. What that is longer by, as aliases make it, takes room as well.
 *
 * @throws {HttpError} 408 when it is not read by the end of the request's own time
 */
async function readYaml(call: Call, body: Uint8Array): Promise<Uint8Array> {
  const { timeout } = call.query;
  const limit = timeout === undefined ? -1 : millisOf(timeout);
  const timed = limit < 0 ? undefined : new TimedSender(senderOf(call), call.begun + limit);
  let json;
  try {
    json = await yamlToJson(body, timed ?? senderOf(call));
  } catch (error) {
    if (timed?.isOver !== true) throw error;
    throw new HttpError(
      'timeout',
      `the body in YAML was not read within the [timeout] of [${String(timeout)}]: send it as JSON`,
    );
  }
  call.hold.take(Math.max(0, json.length - body.length));
  return json;
}

/** Longest time of a timer, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A sender who counts as gone once the time of the request is over. */
class TimedSender implements Sender {
  readonly caller: string;
  /** Whether the time is over. */
  isOver = false;

  /** @param end when the time is over, as `performance.now()` counts */
  constructor(
    private readonly sender: Sender,
    private readonly end: number,
  ) {
    this.caller = sender.caller;
  }

  readonly onGone = (callback: () => void): (() => void) => {
    const late = (): void => {
      this.isOver = true;
      callback();
    };
    const timer = setTimeout(late, Math.min(this.end - performance.now(), LONGEST_TIMER));
    const stay = this.sender.onGone(callback);
    return () => {
      clearTimeout(timer);
      stay();
    };
  };
}

/** A body in the query string, for clients that cannot send one with GET. */
async function fromSource(call: Call): Promise<Uint8Array | undefined> {
  const { source, source_content_type: type } = call.query;
  if (source === undefined && type === undefined) return undefined;
  if (source === undefined || type === undefined) {
    throw new HttpError('illegal_argument', 'source and source_content_type parameters are required');
  }
  let kind;
  try {
    kind = kindOfBody(type, undefined);
  } catch {
    throw new HttpError('illegal_argument', `Unknown value for source_content_type [${type}]`);
  }
  const bytes = new TextEncoder().encode(source);
  return kind === 'yaml' ? readYaml(call, bytes) : bytes;
}
