import { randomUUID } from 'node:crypto';

import { type Endpoint, type Route, type Texts, HttpError } from '@sparrow-search/endpoints';

import type { Dispatch, Exchange } from '../exchange/exchange.js';
import type { Sender } from '../exchange/fair-queue.js';
import type { Hold } from '../exchange/in-flight.js';
import { network } from '../security/attempts.js';
import { type ApiKey, rootOf } from '../security/key-store.js';
import type { Application, Services } from '../services.js';
import type { RequestSpan } from '../tracing/tracing.js';

const NONE: Texts = Object.freeze({});

/** A request on its way to its answer: what came, and what each step found out for those after it. */
export class Call {
  readonly requestId = randomUUID();
  /** When it came, in milliseconds as `performance.now()` counts. */
  readonly begun = performance.now();
  /** What its body and its answer hold of the memory for both. */
  readonly hold: Hold;
  /** The services at its beginning: it is finished with what it was begun with. */
  readonly services: Services | undefined;
  /** The parameters of the query string, once they are read. */
  query: Texts = NONE;
  /** What it asks for, once that is certain. */
  endpoint: Endpoint | undefined;
  /** Whose key it has, once that is known. */
  caller: ApiKey | undefined;
  /** Its body as JSON, once it is read; undefined if it has none. */
  body: Uint8Array | undefined;
  /** Its span, where somebody traces it. */
  readonly span: RequestSpan | undefined;
  /** The indices and aliases that the engine read in it, if somebody wants to know. */
  named: readonly string[] = [];

  /**
   * @param dispatch answers the requests that the answer takes
   * @param route what its path stands for, if anything
   * @param path the parameters in its path
   */
  constructor(
    readonly application: Application,
    readonly dispatch: Dispatch,
    readonly exchange: Exchange,
    readonly route: Route | undefined,
    readonly path: Texts,
  ) {
    this.hold = application.inFlight.request();
    this.services = application.services();
    this.span = application.tracing?.begin(exchange, route);
    application.instruments.requests.active += 1;
  }
}

/** The services with the key of a caller. */
export interface Serving extends Services {
  readonly caller: ApiKey;
}

/** What a call has once its caller is known. Public endpoints never ask for it. */
export function serving({ services, caller }: Call): Serving {
  if (services === undefined || caller === undefined) throw starting();
  const { engine, keys, identity, scripts, tasks, data, address } = services;
  return { engine, keys, identity, scripts, tasks, data, address, caller };
}

/** Who a call is of, where callers take turns: a key with all that it has made, or the address of who has none. */
export function senderOf({ caller, exchange }: Call): Sender {
  const name = caller === undefined ? network(exchange.from) : rootOf(caller);
  return { caller: name, onGone: (callback) => exchange.onGone(callback) };
}

/** The refusal of everything that needs the engine as long as it is opening. */
export function starting(): HttpError {
  return new HttpError('starting', 'blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];');
}

/** The endpoint of a request that a route was found for. */
export function endpointOf({ endpoint }: Call): Endpoint {
  if (endpoint === undefined) throw new Error('a call without an endpoint');
  return endpoint;
}
