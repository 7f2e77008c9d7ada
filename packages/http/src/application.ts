import type { Endpoint, Route } from '@sparrow-search/endpoints';

import { AsyncSearches } from './async-search/async-searches.js';
import { toConsole } from './console.js';
import { carryOutInEngine } from './handlers/engine.js';
import { LOCAL } from './handlers/local.js';
import { Admission } from './exchange/admission.js';
import { checkHeaders } from './exchange/header-lines.js';
import { InFlight } from './exchange/in-flight.js';
import type { Answer } from './exchange/respond.js';
import { securityHeaders } from './exchange/security-headers.js';
import { checkPath } from './exchange/uri.js';
import { checkEndpoint } from './exchange/versions.js';
import { Instruments } from './instruments/instruments.js';
import { checkOrigin } from './mcp/origin.js';
import { noteRejection, takePlace, takeRoom } from './middleware/admission.js';
import { authenticate, authenticateAgain, authorize } from './middleware/authentication.js';
import { readBody } from './middleware/body.js';
import type { Call } from './middleware/call.js';
import { notFound, refuseUnknown } from './middleware/not-found.js';
import { checkParameters, readParameters } from './middleware/parameters.js';
import { refuseMethod, showMethods } from './middleware/wrong-method.js';
import { Attempts } from './security/attempts.js';
import type { AppOptions, Application } from './services.js';
import { findTracing } from './tracing/find.js';

/*
 * The steps of a request, from Hono's router (`app.ts`) to an answer. Each is a function that takes the call and says what it needs of
 * the steps before it and what it adds for those after it; it refuses a request by throwing, which `middleware/on-error.ts` answers. All
 * answers go out through `middleware/respond.ts`. The steps are called, rather than chained as Hono's middlewares: each link of a chain
 * is a promise, which costs more than most of the steps, and all but three of them have nothing to wait for.
 */

/** The steps of a request for an endpoint. What it calls in this process is a part of its span, if it has one. */
export function answerEndpoint(call: Call, endpoint: Endpoint): Promise<Answer> {
  const { span } = call;
  return span === undefined ? stepThrough(call, endpoint) : span.run(() => stepThrough(call, endpoint));
}

async function stepThrough(call: Call, endpoint: Endpoint): Promise<Answer> {
  const elsewhere = enter(call);
  if (elsewhere !== undefined) return elsewhere;
  call.endpoint = endpoint;
  const { handler } = endpoint;
  if ('local' in handler && handler.local === 'mcp') checkOrigin(call.exchange);
  if (isPublic(call, endpoint)) return carryOut(call, endpoint);
  const lookedFor = authenticate(call);
  if (lookedFor !== undefined) await lookedFor;
  checkEndpoint(call.exchange, endpoint);
  checkParameters(call, endpoint);
  authorize(call, endpoint);
  const place = takePlace(call, endpoint);
  try {
    await readBody(call, endpoint, place);
    authenticateAgain(call, endpoint);
    const answer = await carryOut(call, endpoint);
    takeRoom(call, endpoint, answer);
    return answer;
  } catch (error) {
    noteRejection(call, endpoint, error);
    throw error;
  } finally {
    place?.leave();
  }
}

/** The steps of a request for a path that has another method. */
export async function answerOtherMethod(call: Call, route: Route): Promise<Answer> {
  const elsewhere = enter(call);
  if (elsewhere !== undefined) return elsewhere;
  if (call.exchange.method === 'OPTIONS') return showMethods(route);
  await authenticate(call);
  return refuseMethod(call, route);
}

/** The steps of a request for a path without a route. */
export async function answerUnknown(call: Call): Promise<never> {
  await enter(call);
  return notFound(call);
}

/** The first steps of every request; a browser may be led elsewhere, and a path that the server does not have is refused. */
function enter(call: Call): Answer | Promise<never> | undefined {
  readParameters(call);
  checkPath(call.exchange.path);
  checkHeaders(call.exchange);
  const unknown = call.route === undefined ? undefined : refuseUnknown(call);
  return unknown ?? toConsole(call.exchange);
}

function carryOut(call: Call, endpoint: Endpoint): Answer | Promise<Answer> {
  const { handler } = endpoint;
  return 'local' in handler ? LOCAL[handler.local](call) : carryOutInEngine(call, endpoint, handler.engine);
}

/** Whether no key is needed: what orchestrators and browsers ask for, and figures where the operator says so. */
function isPublic({ application: { config } }: Call, { action, handler }: Endpoint): boolean {
  return action === 'public' || (config.metricsOpen === true && 'local' in handler && handler.local === 'metrics');
}

/** Makes what all requests of an application share. */
export function makeApplication(options: AppOptions): Application {
  const { config, instruments = new Instruments(), services } = options;
  const room = (): number => services()?.engine.room?.() ?? Infinity;
  const inFlight = new InFlight(config.maxBodyBytes, {
    room,
    log: options.log,
    keepBodies: (bytes) => services()?.engine.keepBodies?.(bytes),
  });
  instruments.inFlight = inFlight;
  const headers = securityHeaders(config.tlsCert !== undefined);
  const [attempts, admission] = [new Attempts(), new Admission()];
  const asyncSearches = new AsyncSearches();
  const tracing = findTracing(options.log);
  return { ...options, tracing, instruments, attempts, admission, asyncSearches, inFlight, room, headers };
}
