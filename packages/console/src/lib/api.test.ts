import { afterEach, expect, it, vi } from 'vitest';

import { Refused, call, send } from './api';

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

it('says in plain words what a key may not do', async () => {
  const reason =
    'action [cluster:monitor/tasks/lists] is unauthorized for API key id [a] of user [owner], this action is granted by the cluster privileges [monitor,manage,all]';
  const answer = { error: { type: 'security_exception', reason }, status: 403 };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(answer), { status: 403 })));
  await expect(call('GET', '/_tasks', undefined, { key: 'key' })).rejects.toThrow(
    'This key does not have the right to do this: it needs the cluster privilege “monitor”.',
  );
});
