import type { IncomingMessage, ServerResponse } from 'node:http';

import { type Context, Hono } from 'hono';

import { type AppOptions, Application } from './application.js';
import { readFetchBody, readIncoming } from './http/body.js';
import type { Exchange, Finished } from './http/exchange.js';
import { onClose } from './http/gone.js';
import { honoPath, routesByPath } from './routes/table.js';

/** What `@hono/node-server` puts into the context; absent under `app.request()`. */
interface ServerEnv {
  Bindings: { incoming?: IncomingMessage; outgoing?: ServerResponse };
}

/** Builds the Hono application from the route table: every request that `http/direct.ts` does not answer itself. */
export function createApp(options: AppOptions, application = new Application(options)): Hono<ServerEnv> {
  // Not strict: `/books/` is `/books`, as in the original.
  const app = new Hono<ServerEnv>({ strict: false });
  for (const route of routesByPath()) {
    app.all(honoPath(route.path), async (context) =>
      toResponse(await application.answer(exchangeOf(context), route, context.req.param())),
    );
  }
  app.notFound(async (context) => toResponse(await application.answer(exchangeOf(context), undefined, {})));
  return app;
}

function exchangeOf(context: Context<ServerEnv>): Exchange {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- undefined under `app.request()`
  const { incoming, outgoing } = context.env ?? {};
  const { method, path } = context.req;
  return {
    method,
    path,
    uri: incoming?.url ?? pathAndQuery(context.req.url),
    from: incoming?.socket.remoteAddress ?? '',
    header: (name) => context.req.header(name),
    // From Node's request: a Fetch `Request` has no body with GET, and the documented search is a GET with a body.
    readBody: (limit, hold) =>
      incoming === undefined ? readFetchBody(context.req.raw, limit, hold) : readIncoming(incoming, limit, hold),
    onGone: (callback) => (outgoing === undefined ? () => undefined : onClose(outgoing, callback)),
  };
}

function pathAndQuery(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

function toResponse({ status, headers, body }: Finished): Response {
  return new Response(body as string | Uint8Array<ArrayBuffer> | null, {
    status,
    headers: headers.map(([name, value]) => [name, value] as [string, string]),
  });
}
