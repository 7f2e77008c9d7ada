import type { RequestListener } from 'node:http';

import type { Hono } from 'hono';

import { EXCHANGE, type ServerEnv } from '../env.js';
import { Callers } from './callers.js';
import type { Exchange } from './exchange.js';
import type { InFlight } from './in-flight.js';
import { refuseAddress } from './malformed.js';
import { NodeExchange } from './node-exchange.js';
import { targetOf } from './uri.js';

/** A listener that gives every request of a server to a Hono application. */
export function listener(app: Hono<ServerEnv>, inFlight: InFlight): RequestListener {
  const callers = new Callers();
  return (incoming, outgoing) => {
    const concurrent = callers.concurrent(incoming.socket, performance.now());
    const target = targetOf(incoming.url ?? '', incoming.headers.host);
    if (target === undefined) {
      refuseAddress(outgoing);
      return;
    }
    const answered = throughHono(app, new NodeExchange(incoming, outgoing, target, concurrent, inFlight));
    if (answered instanceof Promise) answered.catch(() => outgoing.destroy());
  };
}

/**
 * Gives a request to a Hono application without making one of Fetch: of that, Hono itself reads the method, and `getPath` the path. All
 * handlers read the exchange.
 */
export function throughHono(app: Hono<ServerEnv>, exchange: Exchange): Response | Promise<Response> {
  return app.fetch(exchange as unknown as Request, { [EXCHANGE]: exchange });
}
