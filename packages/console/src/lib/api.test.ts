import { afterEach, expect, it, vi } from 'vitest';

import { Refused, send } from './api';

afterEach(() => {
  vi.unstubAllGlobals();
});

it('sends nothing to another server', async () => {
  const fetched = vi.fn(() => Promise.resolve(new Response('{}')));
  vi.stubGlobal('fetch', fetched);
  const elsewhere = [
    '//example.org/',
    '/\\example.org/',
    '/\t/example.org/',
    '\n//example.org',
    'https://example.org/',
    '',
  ];
  for (const path of elsewhere) {
    const sent = send('GET', path, undefined, { key: 'key' });
    await expect(sent, path).rejects.toThrow(Refused);
    await expect(sent, path).rejects.toThrow('another server');
  }
  expect(fetched).not.toHaveBeenCalled();
  for (const path of ['/', '/books/_search?q=a//b', '/a//b']) await send('GET', path, undefined, { key: 'key' });
  expect(fetched).toHaveBeenCalledTimes(3);
});
