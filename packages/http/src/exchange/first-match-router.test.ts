import { describe, expect, it } from 'vitest';
import { honoPath, routesByPath } from '@sparrow-search/endpoints';

import { FirstMatchRouter } from './first-match-router.js';

const ROUTES = routesByPath().map(({ path }) => path);

/** The table, as the application puts it into the router. */
function table(): FirstMatchRouter<string> {
  const router = new FirstMatchRouter<string>();
  for (const path of ROUTES) router.add('ALL', honoPath(path), path);
  return router;
}

interface Found {
  readonly route: string | undefined;
  readonly path: Readonly<Record<string, string>>;
}

function found(router: FirstMatchRouter<string>, path: string, method = 'GET'): Found {
  const [[first]] = router.match(method, path) as [[string, Record<string, string>][]];
  return { route: first?.[0], path: { ...first?.[1] } };
}

/** What the rule says: of all routes that fit, the one with a literal in the first place in which they differ. */
function expected(path: string): Found {
  const asked = path.split('/').slice(1);
  const isName = (segment: string): boolean => segment.startsWith('{');
  const fitting = ROUTES.map((route) => route.split('/').slice(1)).filter(
    (route) => route.length === asked.length && route.every((segment, at) => isName(segment) || segment === asked[at]),
  );
  const [best] = fitting.sort((a, b) => {
    const at = a.findIndex((segment, place) => isName(segment) !== isName(b[place] ?? ''));
    return at < 0 ? 0 : Number(isName(a[at] ?? '')) - Number(isName(b[at] ?? ''));
  });
  const named = (best ?? []).flatMap((segment, at) => (isName(segment) ? [[segment.slice(1, -1), asked[at]]] : []));
  return { route: best && `/${best.join('/')}`, path: Object.fromEntries(named) as Found['path'] };
}

const VALUES = ['books', '_search', 'logs-*,-logs-2', '.hidden', '_all', '_doc', '_bulk', 'a~b!c', 'ä'];
const PATHS = ROUTES.filter((path) => path !== '/').flatMap((path) =>
  VALUES.map((value) => path.replaceAll(/\{\w+\}/g, value)),
);

describe('the router', () => {
  const shared = table();

  it.each([...new Set(PATHS)])('takes a literal before a parameter: %s', (path) => {
    expect(found(shared, path)).toEqual(expected(path));
  });

  it('takes a parameter where a literal leads nowhere', () => {
    expect(found(table(), '/_ml/_search')).toEqual({ route: '/{index}/_search', path: { index: '_ml' } });
  });

  it.each(['//', '/books//_search', '/books/_search/', '/a/b/c/d/e/f/g'])('finds nothing for %s', (path) => {
    expect(found(table(), path)).toEqual({ route: undefined, path: {} });
  });

  it('gives one handler, which Hono calls without composing', () => {
    const router = new FirstMatchRouter<string>();
    router.add('GET', '/_search', 'searches');
    router.add('ALL', '/_search', 'has another method');
    router.add('PUT', '/:index', 'makes an index');
    expect(router.match('GET', '/_search')[0]).toHaveLength(1);
    expect(found(router, '/_search').route).toBe('searches');
    expect(found(router, '/_search', 'PUT').route).toBe('has another method');
    expect(found(router, '/books', 'PUT').route).toBe('makes an index');
  });

  it('remembers what it found by path and method, and forgets it among too many', () => {
    const router = table();
    const first = router.match('GET', '/books/_search');
    expect(router.match('GET', '/books/_search')).toBe(first);
    expect(router.match('POST', '/books/_search')).not.toBe(first);
    for (let at = 0; at < 1000; at += 1) router.match('GET', `/books-${String(at)}/_search`);
    expect(router.match('GET', '/books/_search')).not.toBe(first);
    expect(router.match('GET', '/books/_search')).toEqual(first);
  });
});
