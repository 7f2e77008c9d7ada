import { SparrowError } from '@sparrow-search/engine';
import { expect, it } from 'vitest';

import { rootReason } from './root-cause.js';

const GEO = 'failed to create query: Field [g] of type [geo_point] does not support range queries';
const ALL = {
  type: 'search_phase_execution_exception',
  reason: 'all shards failed',
  failed_shards: [{ shard: 0, index: 'places', reason: { type: 'query_shard_exception', reason: GEO } }],
};

it('finds the cause below errors of shards and of retrievers', () => {
  const linear = { type: 'status_exception', reason: '[linear] search failed', suppressed: [ALL, ALL] };
  for (const error of [ALL, linear])
    expect(rootReason(new SparrowError(error.reason, 400, error.type, { error }))).toBe(GEO);
});

it('leaves an error as it is that says what is wrong', () => {
  for (const body of [undefined, null, {}, { error: 'no' }, { error: { reason: 'no' } }])
    expect(rootReason(new SparrowError('no', 400, 'x', body))).toBe('no');
});
