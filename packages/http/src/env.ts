import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Exchange } from './exchange/exchange.js';
import type { Call } from './middleware/call.js';

/** Where a request is that does not come as a Fetch object. A symbol: an application around this one may have names of its own. */
export const EXCHANGE: unique symbol = Symbol('exchange');

/** What is in the context of a request. */
export interface ServerEnv {
  Bindings: {
    /** Put there by `@hono/node-server`, if that serves an application with ours as a part; absent under `app.request()`. */
    incoming?: IncomingMessage;
    outgoing?: ServerResponse;
    [EXCHANGE]?: Exchange;
  };
  Variables: { call: Call };
}
