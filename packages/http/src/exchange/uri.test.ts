import { describe, expect, it } from 'vitest';

import { routedPath, targetOf } from './uri.js';

const NOWHERE = '//';

describe('the target of a request', () => {
  it.each([
    ['/books/_search', '/books/_search', '/books/_search'],
    ['/books/_search/?q=a/b', '/books/_search/', '/books/_search'],
    ['/', '/', '/'],
    ['//', '//', '/'],
    ['/books//_search', '/books//_search', '/books//_search'],
    ['/b%C3%BCcher/_doc/a%2Fb', '/bücher/_doc/a%2Fb', '/bücher/_doc/a%2Fb'],
    ['/b%6foks/', '/books', '/books'],
    ['/books/_doc/%252F', '/books/_doc/%252F', '/books/_doc/%252F'],
    ['/books/_search#x?y', '/books/_search', '/books/_search'],
    ['http://x/books?size=1', '/books', '/books'],
    ['https://x', '/', '/'],
    ['*', '*', NOWHERE],
    ['*?x', '*?x', NOWHERE],
    ['/books/_doc/..', '/books/_doc/..', NOWHERE],
    ['/books/%2e%2E/x?y', '/books/%2e%2E/x', NOWHERE],
    ['http://x/../books', 'http://x/../books', NOWHERE],
  ])('%s is for %s, and has the route of %s', (uri, path, routed) => {
    expect(targetOf(uri, 'localhost:9200')).toEqual({ path, routed });
  });

  it.each([
    ['/a\\b', 'x'],
    ['http://[', 'x'],
    ['HTTP://x/books', 'x'],
    ['ftp://x/books', 'x'],
    ['/books', 'a b'],
    ['/books', '['],
    ['/books', 'x:99999'],
    ['/books', 'somebody@x'],
    ['/books', 'x/y'],
    ['/books', 'ü'],
  ])('%s with the host %s has none', (uri, host) => {
    expect(targetOf(uri, host)).toBeUndefined();
  });

  it.each([undefined, '', 'x_y-z', 'EXAMPLE.org:65000', '[::1]:9200', '127.0.0.1'])(
    'may come with the host %s',
    (host) => {
      expect(targetOf('/books', host)).toEqual({ path: '/books', routed: '/books' });
    },
  );

  it('in this process may lack the slash in front', () => {
    expect(routedPath('b%6foks/_search')).toBe('/books/_search');
  });
});
