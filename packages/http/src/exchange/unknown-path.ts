import {
  type Method,
  type Route,
  RoutingError,
  elsewhere,
  isOpenAiPath,
  routesByPath,
} from '@sparrow-search/endpoints';
import { similarity } from '@sparrow-search/engine/diagnostics';

import type { Exchange } from './exchange.js';

/** Similarity of two names in a path above which one is taken for a slip of the other. */
const SIMILAR = 0.7;

/** The similarity of names in which two letters are swapped. */
const SWAPPED = 0.9;

/**
 * The refusal of a path that this server does not have, whatever index a route would take its first name for: a name that begins
 * with `_` is never an index. Undefined for a path that the route answers.
 *
 * @param route what the path fits, if anything
 */
export function unknownPath(exchange: Exchange, route: Route | undefined): RoutingError | undefined {
  const { path, method } = exchange;
  if (route === undefined && isOpenAiPath(path)) return notServed(exchange);
  if (route !== undefined && !(path.startsWith('/_') && route.path.includes('{'))) return undefined;
  const unknown = unhandled(exchange).sentence;
  // A path may be served by a method that only lists: of the others it is said what they are for.
  const isServed = method === 'OPTIONS' || route?.methods.has(method as Method) === true;
  const sentence = elsewhere(path, isServed ? route?.path : undefined);
  if (sentence !== undefined) return new RoutingError(400, `${unknown}: ${sentence}`, false);
  if (route !== undefined && !takesForIndex(route, path)) return undefined;
  const meant = path.startsWith('/') ? nearest(path, method) : undefined;
  if (meant !== undefined) return new RoutingError(400, `${unknown} -> did you mean [${meant}]?`, false);
  // The engine says of a name what an index may be called, as far as indices have the method.
  if (route !== undefined && (method === 'OPTIONS' || method === 'HEAD' || route.methods.has(method as Method)))
    return undefined;
  return unhandled(exchange);
}

/** The refusal of a path that other servers with these interfaces have: their clients read a 404 for what is not there. */
function notServed({ path, method }: Exchange): RoutingError {
  const there = served.map(({ route }) => route.path).filter(isOpenAiPath);
  return new RoutingError(404, `there is no [${method} ${path}] on this server; there are [${there.join(', ')}]`);
}

/** The refusal of a path about which nothing is known. */
export function unhandled({ uri, method }: Exchange): RoutingError {
  return new RoutingError(400, `no handler found for uri [${uri}] and method [${method}]`, false);
}

/** Whether a route takes a name that begins with `_` for an index. */
function takesForIndex(route: Route, path: string): boolean {
  return route.path.startsWith('/{index}') && !/^\/_all(?:\/|$)/.test(path);
}

/** The paths of the table. */
const served = routesByPath().map((route) => ({ route, segments: segments(route.path) }));

/** The path of this server that is most similar, with the names of the given one where it has parameters. */
function nearest(path: string, method: string): string | undefined {
  const asked = segments(path);
  let best: { readonly path: string; readonly likeness: number } | undefined;
  for (const { route, segments: known } of served) {
    if (known.length !== asked.length) continue;
    const likeness = likenessOf(known, asked) + (route.methods.has(method as Method) ? 0.001 : 0);
    if (likeness > (best?.likeness ?? SIMILAR)) {
      const filled = known.map((segment, at) => (segment.startsWith('{') ? (asked[at] ?? '') : segment));
      best = { path: `/${filled.join('/')}`, likeness };
    }
  }
  return best?.path;
}

/** Similarity of the least similar names; 0 where a parameter would have the name of an endpoint, or all are parameters. */
function likenessOf(known: readonly string[], asked: readonly string[]): number {
  let least = 1;
  for (const [at, segment] of known.entries()) {
    const given = asked[at] ?? '';
    if (segment.startsWith('{')) least = given.startsWith('_') && given !== '_all' ? 0 : least;
    else least = Math.min(least, isSwapped(given, segment) ? SWAPPED : similarity(given, segment));
    if (least <= SIMILAR) return 0;
  }
  return least;
}

/** Whether two names differ in the order of two neighbouring letters only, which is the most common slip. */
function isSwapped(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at < a.length && a[at] === b[at + 1] && a[at + 1] === b[at] && a.slice(at + 2) === b.slice(at + 2);
}

function segments(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
