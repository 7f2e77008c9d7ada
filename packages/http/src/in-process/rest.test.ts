import { type SearchEngine, Sparrow } from '@sparrow-search/engine';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { KeyStore } from '../security/key-store.js';
import { Rest } from './rest.js';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the interface over an engine', () => {
  it('is tried again after it could not be made', async () => {
    const open = vi.spyOn(KeyStore, 'open').mockRejectedValueOnce(new Error('no space left'));
    open.mockRejectedValueOnce(new Error('still none'));
    const sparrow = { engine: {} as SearchEngine, data: 'nowhere' };
    await expect(Rest.over(sparrow)).rejects.toThrow('no space left');
    await expect(Rest.over(sparrow)).rejects.toThrow('still none');
  });

  it('ends work whose signal was set before anybody could be told', async () => {
    const sparrow = await Sparrow.open();
    try {
      const rest = await Rest.over(sparrow);
      let told = false;
      vi.spyOn(sparrow.engine, 'execute').mockImplementationOnce((_request, _body, cancel) => {
        cancel?.(() => (told = true));
        return Promise.reject(new Error('ended'));
      });
      const controller = new AbortController();
      const body = {
        toJSON: (): object => {
          controller.abort(new Error('left'));
          return {};
        },
      };
      const asked = rest.request({ method: 'POST', path: '/_search', body, signal: controller.signal });
      await expect(asked).rejects.toThrow('left');
      expect(told).toBe(true);
    } finally {
      await sparrow.close();
    }
  });
});
