import { describe, expect, it } from 'vitest';
import { type Endpoint, ENDPOINTS } from '@sparrow-search/endpoints';

import { InFlight } from '../exchange/in-flight.js';
import { takeRoom } from './admission.js';

/** Whether an answer of 100 kB to an endpoint is refused where others hold all the room. */
function isRefused(endpoint: Endpoint): boolean {
  const inFlight = new InFlight(1000, { memory: 0 });
  inFlight.request().force(inFlight.limit + 1);
  try {
    takeRoom({ hold: inFlight.request(), caller: undefined }, endpoint, { status: 200, body: 'x'.repeat(100_000) });
    return false;
  } catch {
    return true;
  }
}

describe('the room for answers', () => {
  it('is taken for whatever shows what is stored, by the engine or not', () => {
    const shown = ENDPOINTS.filter(({ method, action }) => method === 'GET' && action !== 'public');
    expect(shown.filter((endpoint) => !isRefused(endpoint)).map(({ path }) => path)).toEqual([
      '/metrics',
      '/_health_report',
      '/_health_report/{feature}',
    ]);
    const posted = ENDPOINTS.filter(({ method, path }) => method === 'POST' && path === '/_security/_query/api_key');
    expect(posted.map(isRefused)).toEqual([true]);
  });

  it('is not taken for what tells of a change', () => {
    expect(ENDPOINTS.filter(({ method }) => method === 'PUT').filter(isRefused)).toEqual([]);
  });
});
