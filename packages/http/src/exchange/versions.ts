import { type Endpoint, RoutingError } from '@sparrow-search/endpoints';

import type { Exchange } from './exchange.js';
import { versionOf } from './media-types.js';
import type { Answer } from './respond.js';

/** A form of the interface that a version of it has no more. */
interface Gone {
  /** The first version without it. */
  readonly since: number;
  /** The operations that had it; every one without this. */
  readonly operations?: readonly string[];
  /** The query parameter that is gone; the endpoint itself without this. */
  readonly parameter?: string;
  /** What to use in its place, for the refusal of an endpoint. */
  readonly instead?: string;
}

/**
 * What a request of a newer version gets differently, beside statuses ({@link STATUSES}). `docs/compatibility.md` has the same rows
 * under "Version 9".
 */
const GONE: readonly Gone[] = [
  { since: 9, operations: ['knn_search'], instead: 'use [_search] with a section [knn]' },
  { since: 9, operations: ['get_alias', 'cat_aliases'], parameter: 'local' },
  { since: 9, parameter: 'ignore_throttled' },
];

/** Errors whose status a newer version changed: a client that waited for too long may come again. */
const STATUSES = [{ since: 9, type: 'timeout_exception', from: 504, to: 429 }] as const;

/** The version of the interface that a request speaks. */
export function spokenBy(exchange: Pick<Exchange, 'header'>): number {
  return versionOf(exchange.header('accept'), exchange.header('content-type'));
}

/** The query parameters that an endpoint has in a version. */
export function parametersIn(version: number, { handler, params }: Endpoint): readonly string[] {
  const gone = GONE.filter((one) => one.parameter !== undefined && isGone(one, version, handler));
  return gone.length === 0 ? params : params.filter((name) => gone.every(({ parameter }) => parameter !== name));
}

/** @throws {RoutingError} 400 for an endpoint that the version of the request has no more */
export function checkEndpoint(exchange: Exchange, { handler }: Endpoint): void {
  const version = spokenBy(exchange);
  const gone = GONE.find((one) => one.parameter === undefined && isGone(one, version, handler));
  if (gone === undefined) return;
  const unknown = `no handler found for uri [${exchange.uri}] and method [${exchange.method}]`;
  throw new RoutingError(400, `${unknown}: version ${String(version)} has none; ${gone.instead ?? ''}`, false);
}

/** An answer with the status that it has in a version. */
export function answeredIn(version: number, answer: Answer): Answer {
  const changed = STATUSES.find(({ since, from }) => version >= since && answer.status === from);
  if (changed === undefined || answer.body === null) return answer;
  if (answer.errorType !== changed.type) return answer;
  const text = typeof answer.body === 'string' ? answer.body : Buffer.from(answer.body).toString();
  const body = text.replace(new RegExp(`"status":${String(changed.from)}\\}$`), `"status":${String(changed.to)}}`);
  return { ...answer, status: changed.to, body };
}

function isGone({ since, operations }: Gone, version: number, handler: Endpoint['handler']): boolean {
  if (version < since) return false;
  return operations === undefined || operations.includes('engine' in handler ? handler.engine : handler.local);
}
