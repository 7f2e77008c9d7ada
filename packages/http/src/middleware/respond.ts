import type { Finished } from '../exchange/exchange.js';
import { type Answer, finish } from '../exchange/respond.js';
import { audit } from './audit.js';
import type { Call } from './call.js';
import { onError } from './on-error.js';
import { logRequest } from './request-log.js';

/**
 * Ends every request, refused or not: gives its answer the headers, shape and encoding that it asked for, writes it down, counts it, sends
 * it, and gives back the room that the request held. Needs an answer and whatever is known of the request.
 */
export function respond(call: Call, answer: Answer): Response | Promise<Response> {
  // An answer that is being shaped or compressed counts as held until it is sent; then it counts as one that is not read yet.
  const release = (): void => {
    call.hold.release();
  };
  let response: Response | Promise<Response>;
  try {
    response = shapeAndSend(call, answer);
  } catch (error) {
    release();
    throw error;
  }
  if (response instanceof Promise) return response.finally(release);
  release();
  return response;
}

function shapeAndSend(call: Call, answer: Answer): Response | Promise<Response> {
  const { exchange, query, application } = call;
  const headers = headersOf(call, answer);
  const finished = finish(answer, exchange, query, headers, application.room);
  if (!(finished instanceof Promise)) return end(call, answer, finished);
  return finished.then(
    (shaped) => end(call, answer, shaped),
    // What cannot be shaped is refused without any shape.
    async (error: unknown) => {
      const refused = onError(call, error);
      return end(call, refused, await finish(refused, exchange, {}, headers));
    },
  );
}

function headersOf({ application, exchange, requestId, caller }: Call, { type, status }: Answer): Finished['headers'] {
  const headers: (readonly [string, string])[] = [];
  if (application.config.productHeader) headers.push(['X-Elastic-Product', 'Elasticsearch']);
  const opaqueId = exchange.header('x-opaque-id');
  if (opaqueId !== undefined) headers.push(['X-Opaque-Id', opaqueId]);
  headers.push(['X-Request-Id', requestId], ...application.headers);
  // A client without a key does not get one refusal after another over the same connection.
  if ((status === 401 || status === 429) && caller === undefined && exchange.endsWhenRefused === true) {
    headers.push(['Connection', 'close']);
  }
  // Pages say themselves how long they may be kept; what is answered to a key may not be kept by anybody.
  if (type !== 'html') headers.push(['Cache-Control', 'no-store']);
  return headers;
}

/** Writes a request down, counts it and sends its answer, shorter if its client can read that. */
function end(call: Call, answer: Answer, finished: Finished): Response | Promise<Response> {
  const { application, exchange, route, begun } = call;
  audit(call, answer);
  logRequest(call, answer.status);
  call.span?.end(answer.status);
  const { requests } = application.instruments;
  requests.active -= 1;
  requests.answered(route, exchange.method, answer.status, (performance.now() - begun) / 1000);
  const isEncoded = application.config.compression && exchange.method !== 'HEAD';
  const encodings = isEncoded ? exchange.header('accept-encoding') : undefined;
  return encodings === undefined ? exchange.send(finished) : sendEncoded(call, finished, encodings);
}

async function sendEncoded({ exchange, application }: Call, finished: Finished, encodings: string): Promise<Response> {
  let encoded = finished;
  try {
    // Only servers whose clients can read these load the codecs.
    const { encode } = await import('../exchange/encodings.js');
    encoded = await encode(finished, encodings);
  } catch (error) {
    // The answer is right as it is, only longer.
    application.log.error('an answer could not be compressed', { error: String(error) });
  }
  return exchange.send(encoded);
}
