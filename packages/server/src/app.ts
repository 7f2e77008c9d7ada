import type { IncomingMessage, ServerResponse } from 'node:http';

import { type Context, Hono } from 'hono';
import { basePath } from 'hono/route';

import { type AppOptions, Application } from './application.js';
import { readFetchBody, readIncoming } from './http/body.js';
import type { Exchange, Finished } from './http/exchange.js';
import { onClose } from './http/gone.js';
import { honoPath, routesByPath } from './routes/table.js';

/** What `@hono/node-server` puts into the context; absent under `app.request()`. */
export interface ServerEnv {
  Bindings: { incoming?: IncomingMessage; outgoing?: ServerResponse };
}

/** Builds the Hono application from the route table: every request that `http/direct.ts` does not answer itself. */
export function createApp(options: AppOptions, application = new Application(options)): Hono<ServerEnv> {
  const app = routed(application, () => '');
  app.notFound(async (context) => toResponse(await application.answer(exchangeOf(context, ''), undefined, {})));
  return app;
}

/** Builds a Hono application with every route, to be mounted in somebody else's below a path of their choice with `route`. */
export function createPart(application: Application): Hono<ServerEnv> {
  const prefixOf = (context: Context): string => basePath(context).replace(/\/+$/, '');
  const part = routed(application, prefixOf);
  // Hono would leave an unknown path below the mount to the application around it: it is answered here, as by the server.
  part.all('*', async (context) => {
    const prefix = prefixOf(context);
    return toResponse(await application.answer(exchangeOf(context, prefix), undefined, {}), prefix);
  });
  return part;
}

/** What the names of our parameters begin with: the path that a part is put below may have some of the same names, which Hono would take. */
const OWN = 'sparrow_';

/** An application with all routes; `prefixOf` tells the path below which they are, without a slash at its end. */
function routed(application: Application, prefixOf: (context: Context) => string): Hono<ServerEnv> {
  // Not strict: `/books/` is `/books`, as in the original.
  const app = new Hono<ServerEnv>({ strict: false });
  for (const route of routesByPath()) {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    app.all(honoPath(route.path, OWN), async (context) => {
      const prefix = prefixOf(context);
      const given: Readonly<Record<string, string>> = context.req.param();
      const path = Object.fromEntries(names.map((name) => [name, given[OWN + name] ?? '']));
      return toResponse(await application.answer(exchangeOf(context, prefix), route, path), prefix);
    });
  }
  return app;
}

function exchangeOf(context: Context<ServerEnv>, prefix: string): Exchange {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- undefined under `app.request()`
  const { incoming, outgoing } = context.env ?? {};
  const { method, path } = context.req;
  return {
    method,
    path: below(prefix, path),
    uri: below(prefix, incoming?.url ?? pathAndQuery(context.req.url)),
    from: incoming?.socket.remoteAddress ?? '',
    concurrent: true,
    header: (name) => context.req.header(name),
    headerLines: incoming?.rawHeaders ?? [],
    // From Node's request: a Fetch `Request` has no body with GET, and the documented search is a GET with a body.
    readBody: (limit, hold) =>
      incoming === undefined ? readFetchBody(context.req.raw, limit, hold) : readIncoming(incoming, limit, hold),
    onGone: (callback) => (outgoing === undefined ? () => undefined : onClose(outgoing, callback)),
  };
}

/** A path without what comes before it; as it is where it is written in another way. */
function below(prefix: string, path: string): string {
  if (prefix === '' || !path.startsWith(prefix)) return path;
  const rest = path.slice(prefix.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function pathAndQuery(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

function toResponse({ status, headers, body }: Finished, prefix = ''): Response {
  return new Response(body as string | Uint8Array<ArrayBuffer> | null, {
    status,
    // Where a document is, as whoever wrote it gets there.
    headers: headers.map(([name, value]): [string, string] => [name, name === 'Location' ? prefix + value : value]),
  });
}
