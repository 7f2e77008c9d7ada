// Replays what real servers answered. Whatever is not excused in coverage.ts must come out the same.
import { existsSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { differences } from './compare.js';
import { NOT_COVERED } from './coverage.js';
import { Replay, readExchanges } from './replay.js';

const RECORDING = new URL('../fixtures/recorded/elasticsearch-8.19.21.jsonl', import.meta.url);

/** Theirs keep nine bits of a sparse weight; everything else is exact but for the last digits. */
const SPARSE = { score: 0.004 };
const EXACT = { score: 1e-5 };

describe.skipIf(!existsSync(RECORDING))('the recorded answers of Elasticsearch 8.19.21', () => {
  const exchanges = existsSync(RECORDING) ? readExchanges(RECORDING) : [];
  let server: RunningServer;
  let replay: Replay;

  beforeAll(async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    replay = new Replay(server);
  });

  afterAll(async () => {
    await server.stop();
  });

  it('excuse only exchanges that exist', () => {
    const names = new Set(exchanges.map(({ name }) => name));
    expect(Object.keys(NOT_COVERED).filter((name) => !names.has(name))).toEqual([]);
  });

  // In order: the later ones build on the earlier ones. What is excused is not played, as it changed nothing over there.
  for (const exchange of exchanges.filter(({ name }) => !(name in NOT_COVERED))) {
    const { name, request } = exchange;
    it(`${name}: ${request.method} ${request.path}`, async () => {
      const { ours, recorded } = await replay.play(exchange);
      expect(ours.status, ours.text).toBe(recorded.status);
      expect(ours.headers['content-type'] ?? '').toBe(recorded.headers['content-type'] ?? '');
      expect(ours.headers['x-elastic-product']).toBe('Elasticsearch');
      const tolerance = /sparse|weighted/.test(name) ? SPARSE : EXACT;
      expect(differences(recorded.body, ours.body, tolerance), ours.text).toEqual([]);
    });
  }
});
