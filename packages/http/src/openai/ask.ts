import type { EngineRequest, SearchEngine } from '@sparrow-search/engine';

import type { Exchange } from '../exchange/exchange.js';
import { traceOf } from '../exchange/trace-context.js';

/** Operations of the engine on models, which Elasticsearch's interface reaches by its own paths. */
type Asked = 'get_inference' | 'get_trained_models' | 'infer' | 'infer_trained_model';

interface Parameters {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** The body of an answer, and in `tokens` how many tokens models have read for it. */
type Told = Readonly<Record<string, unknown>> & { readonly tokens: number };

/** Asks the engine. */
export type Ask = (op: Asked, parameters?: Parameters) => Promise<Told>;

/** How long a request waits for its vectors, as at `_inference`. */
const TIMEOUT = '30s';

/** Asks for a request. The work stops when its connection closes before the answer is there. */
export function askFor(
  exchange: Exchange,
  engine: SearchEngine,
  { requestId, timeout = TIMEOUT }: { readonly requestId: string; readonly timeout: string | undefined },
): Ask {
  return async (op, { path = {}, query = {}, body } = {}) => {
    const request: EngineRequest = {
      op,
      path,
      query: body === undefined ? query : { ...query, timeout },
      requestId,
      opaqueId: exchange.header('x-opaque-id'),
      traceId: traceOf(exchange.header('traceparent')),
      concurrent: exchange.concurrent,
    };
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const reply = await engine.execute(request, sent, exchange.onGone.bind(exchange));
    const told = JSON.parse(Buffer.from(reply.body).toString()) as Record<string, unknown>;
    return { ...told, tokens: reply.tokens ?? 0 };
  };
}
