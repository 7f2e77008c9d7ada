import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Exchange } from './http/exchange.js';
import type { Call } from './middleware/call.js';

/** What is in the context of a request. */
export interface ServerEnv {
  Bindings: {
    /** Put there by `@hono/node-server`, if that serves an application with ours as a part; absent under `app.request()`. */
    incoming?: IncomingMessage;
    outgoing?: ServerResponse;
    /** The request, where it is none of Fetch. */
    exchange?: Exchange;
  };
  Variables: { call: Call };
}
