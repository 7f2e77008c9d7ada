import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';

import { Matcher } from './matcher.js';
import { honoPath, routesByPath } from './table.js';

const matcher = new Matcher();

/** The same table in Hono, which serves what the matcher leaves. */
const hono = new Hono({ strict: false });
for (const route of routesByPath()) {
  hono.all(honoPath(route.path), (context) => context.json({ route: route.path, path: context.req.param() }));
}

const VALUES = ['books', '_search', 'logs-*,-logs-2', '.hidden', '_all', '_doc', '_bulk', 'a~b!c'];
const PATHS = routesByPath().flatMap(({ path }) =>
  VALUES.map((value) => path.replaceAll(/\{\w+\}/g, value)).flatMap((filled) => [filled, `${filled}/`]),
);

describe('the matcher', () => {
  it.each([...new Set(PATHS)].filter((path) => path !== '//' && path !== '/'))(
    'finds what Hono finds: %s',
    async (path) => {
      const found = matcher.match(path);
      const expected = (await (await hono.request(path)).json()) as unknown;
      expect({ route: found?.route.path, path: found?.path }).toEqual(expected);
    },
  );

  it('finds a search, twice the same', () => {
    const found = matcher.match('/books/_search');
    expect(found?.route.path).toBe('/{index}/_search');
    expect(found?.path).toEqual({ index: 'books' });
    expect(matcher.match('/books/_search')).toBe(found);
  });

  it.each([
    '/',
    '/b%C3%BCcher/_search',
    '/books//_search',
    '/./_search',
    '/books/../_search',
    '/books/..',
    '',
    '*',
    '/ä',
    '/a b',
  ])('leaves what is not plain to others: %s', (path) => {
    expect(matcher.match(path)).toBeUndefined();
  });

  it('takes a parameter where a literal leads nowhere', () => {
    expect(matcher.match('/_ml/_search')?.path).toEqual({ index: '_ml' });
  });
});
