import { SparrowError } from '@sparrow-search/engine';
import { expect, it } from 'vitest';

import { LocalExchange } from '../in-process/local-exchange.js';
import { answerToError, finish } from './respond.js';

it('answers what an engine refuses to the server itself with its status, and when to come again', async () => {
  const refusal = new SparrowError('[1000] searches wait', 429, 'es_rejected_execution_exception', {
    error: 'not shown',
  });
  const answer = answerToError(refusal);
  expect(answer).toMatchObject({ status: 429, errorType: 'es_rejected_execution_exception' });
  const { status, headers, body } = await finish(
    answer ?? { status: 500, body: null },
    new LocalExchange({ method: 'GET', path: '/' }),
    {},
    [],
  );
  expect(status).toBe(429);
  expect(headers).toContainEqual(['Retry-After', expect.stringMatching(/^[1-9]\d*$/)]);
  const cause = { type: 'es_rejected_execution_exception', reason: '[1000] searches wait' };
  expect(JSON.parse(String(body))).toEqual({ error: { root_cause: [cause], ...cause }, status: 429 });
});
