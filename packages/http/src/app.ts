import { type Context, Hono } from 'hono';
import { basePath } from 'hono/route';
import { getPathNoStrict } from 'hono/utils/url';
import { type Route, SPARSE_PATH, honoPath, routesByPath } from '@sparrow-search/endpoints';

import { answerEndpoint, answerOtherMethod, answerUnknown, makeApplication } from './application.js';
import { EXCHANGE, type ServerEnv } from './env.js';
import type { Dispatch, Exchange } from './exchange/exchange.js';
import { FetchExchange } from './exchange/fetch-exchange.js';
import { FirstMatchRouter } from './exchange/first-match-router.js';
import { throughHono } from './exchange/through-hono.js';
import { Call } from './middleware/call.js';
import { onError } from './middleware/on-error.js';
import { respond } from './middleware/respond.js';
import type { AppOptions, Application } from './services.js';

/** Builds the Hono application from the route table. */
export function createApp(options: AppOptions, application = makeApplication(options)): Hono<ServerEnv> {
  const { app, unknown } = routed(application, () => '');
  app.notFound(unknown);
  return app;
}

/** Builds a Hono application with every route, to be mounted in somebody else's below a path of their choice with `route`. */
export function createPart(application: Application): Hono<ServerEnv> {
  const { app, unknown } = routed(application, (context) => mountOf(context).replace(/\/+$/, ''));
  // Hono would leave an unknown path below the mount to the application around it: it is answered here, as by the server.
  app.all('*', unknown);
  return app;
}

/** The path below which a request found the part. */
function mountOf(context: Context): string {
  try {
    return basePath(context);
  } catch {
    // The application is made with another copy of Hono, whose requests keep their routes where ours does not look.
    const { req } = context;
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- what is to be used instead is what has failed
    const base = req.matchedRoutes[req.routeIndex]?.basePath.replace(/\/+$/, '') ?? '';
    return req.path.split('/').slice(0, base.split('/').length).join('/');
  }
}

/** What the names of our parameters begin with: the path that a part is put below may have some of the same names, which Hono would take. */
const OWN = 'sparrow_';

/**
 * Paths of the server that are names of indices as well, with the methods that are left to the routes of indices: all but the server's own,
 * or those that a client of the path never sends. Clients of `/mcp` send `GET` and `DELETE`; `PUT` says that no index can have the name.
 */
const NAMES_OF_INDICES = new Map<string, 'others' | 'PUT'>([
  [SPARSE_PATH, 'others'],
  ['/metrics', 'others'],
  ['/mcp', 'PUT'],
]);
const METHODS_BUT_PUT = ['GET', 'POST', 'DELETE', 'PATCH', 'OPTIONS'];

/**
 * An application with all routes, and what answers everything else.
 *
 * @param prefixOf tells the path below which the routes are, without a slash at its end
 */
function routed(
  application: Application,
  prefixOf: (context: Context) => string,
): { readonly app: Hono<ServerEnv>; readonly unknown: (context: Context<ServerEnv>) => Response | Promise<Response> } {
  const app = new Hono<ServerEnv>({ router: new FirstMatchRouter(), getPath });
  const dispatch: Dispatch = (exchange) => throughHono(app, exchange);
  const received = (
    context: Context<ServerEnv>,
    route?: Route,
    names: readonly string[] = [],
    path: Record<string, string> = {},
  ): Call => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- undefined under `app.request()`
    const exchange: Exchange = context.env?.[EXCHANGE] ?? new FetchExchange(context, prefixOf(context));
    exchange.settle?.(route);
    for (const name of names) path[name] = context.req.param(OWN + name) ?? '';
    const call = new Call(application, dispatch, exchange, route, path);
    context.set('call', call);
    return call;
  };
  const routes = routesByPath();
  const ofIndices = routes.find((route) => route.path === '/{index}');
  for (const route of routes) {
    const left = NAMES_OF_INDICES.get(route.path);
    const path = honoPath(route.path, OWN);
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    for (const [method, endpoint] of route.methods) {
      // Hono asks what answers `GET`.
      if (method === 'HEAD') continue;
      app.on(method, path, async (context) => {
        const exists = left === 'others' && context.req.method === 'HEAD' ? ofIndices?.methods.get('HEAD') : undefined;
        if (exists !== undefined) {
          const call = received(context, ofIndices, [], { index: path.slice(1) });
          return respond(call, await answerEndpoint(call, exists));
        }
        const call = received(context, route, names);
        const head = call.exchange.method === 'HEAD' ? route.methods.get('HEAD') : undefined;
        return respond(call, await answerEndpoint(call, head ?? endpoint));
      });
    }
    if (left === 'others') continue;
    // Before any route with a parameter in its place: `/_search` has no `PUT`, and is no index that could be made.
    const others = async (context: Context<ServerEnv>): Promise<Response> => {
      const call = received(context, route, names);
      return respond(call, await answerOtherMethod(call, route));
    };
    if (left === 'PUT') app.on(METHODS_BUT_PUT, path, others);
    else app.all(path, others);
  }
  app.onError((error, context) => {
    const call = context.get('call') as Call | undefined;
    // What fails before there is one is told as it is.
    if (call === undefined) throw error;
    return respond(call, onError(call, error));
  });
  return { app, unknown: (context) => answerUnknown(received(context)) };
}

/** The path by which Hono finds a route. Not strict: `/books/` is `/books`, as in the original. */
function getPath(request: Request, options?: { readonly env?: ServerEnv['Bindings'] }): string {
  const { [EXCHANGE]: exchange } = options?.env ?? {};
  return exchange?.routed ?? getPathNoStrict(request);
}
