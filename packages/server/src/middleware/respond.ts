import type { Finished } from '../http/exchange.js';
import { type Answer, finish } from '../http/respond.js';
import { audit } from './audit.js';
import type { Call } from './call.js';
import { refusal } from './on-error.js';
import { logRequest } from './request-log.js';

/**
 * Ends every request, refused or not: gives back the room that it held, writes it down, gives its answer the headers, shape and encoding
 * that it asked for, counts it and sends it. Needs an answer and whatever is known of the request.
 */
export function respond(call: Call, answer: Answer): Response | Promise<Response> {
  call.hold.release();
  audit(call, answer);
  const headers = headersOf(call, answer);
  logRequest(call, answer.status);
  const { exchange, query, application } = call;
  const finished = finish(answer, exchange, query, headers, application.room);
  if (!(finished instanceof Promise)) return send(call, answer, finished);
  return finished
    .catch((error: unknown) => finish(refusal(call, error), exchange, {}, headers))
    .then((shaped) => send(call, answer, shaped));
}

function headersOf({ application, exchange, requestId }: Call, { type }: Answer): Finished['headers'] {
  const headers: (readonly [string, string])[] = [];
  if (application.config.productHeader) headers.push(['X-Elastic-Product', 'Elasticsearch']);
  const opaqueId = exchange.header('x-opaque-id');
  if (opaqueId !== undefined) headers.push(['X-Opaque-Id', opaqueId]);
  headers.push(['X-Request-Id', requestId], ...application.headers);
  // Pages say themselves how long they may be kept; what is answered to a key may not be kept by anybody.
  if (type !== 'html') headers.push(['Cache-Control', 'no-store']);
  return headers;
}

/** Counts a request and sends its answer, shorter if its client can read that. */
function send(call: Call, { status }: Answer, finished: Finished): Response | Promise<Response> {
  const { application, exchange, route, begun } = call;
  const { requests } = application.instruments;
  requests.active -= 1;
  requests.answered(route, exchange.method, status, (performance.now() - begun) / 1000);
  const isEncoded = application.config.compression && exchange.method !== 'HEAD';
  const encodings = isEncoded ? exchange.header('accept-encoding') : undefined;
  return encodings === undefined ? exchange.send(finished) : sendEncoded(call, finished, encodings);
}

async function sendEncoded({ exchange }: Call, finished: Finished, encodings: string): Promise<Response> {
  // Only servers whose clients can read these load the codecs.
  const { encode } = await import('../http/encodings.js');
  return exchange.send(await encode(finished, encodings));
}
