// Replays what a real server answered. Whatever is not excused in coverage.ts must come out the same.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';
import { differences } from './compare.js';
import { ANYTHING, FIGURES, KIND_ONLY, NOT_COVERED } from './coverage.js';
import { type Exchange, Replay, readExchanges } from './replay.js';

const exchanges = readExchanges(new URL('../fixtures/recorded/elasticsearch-8.19.21.jsonl', import.meta.url));

/** The node's id in the recording. */
const RECORDED_NODE = 'ZMEcqj9MRC2-H7tSnc1IzQ';

/** Theirs keep nine bits of a sparse weight; everything else is exact but for the last digits. */
const SPARSE_SCORE = 0.004;
const OTHER_SCORE = 1e-5;

describe('the recorded answers of Elasticsearch 8.19.21', () => {
  let server: RunningServer;
  let replay: Replay;

  beforeAll(async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    const tasks = await server.request('GET', '/_tasks');
    const [node = ''] = Object.keys(tasks.body.nodes as object);
    expect(node).toMatch(/^[\w-]{22}$/);
    replay = new Replay(server, { [RECORDED_NODE]: node });
  });

  afterAll(async () => {
    await server.stop();
  });

  it('are excused only where they exist', () => {
    const names = new Set(exchanges.map(({ name }) => name));
    expect(names.size).toBe(exchanges.length);
    expect(
      [...Object.keys(NOT_COVERED), ...Object.keys(KIND_ONLY), ...Object.keys(FIGURES)].filter(
        (name) => !names.has(name),
      ),
    ).toEqual([]);
  });

  // In order: the later ones build on the earlier ones. What is excused is not played, as it changed nothing over there.
  for (const exchange of exchanges.filter(({ name }) => !(name in NOT_COVERED))) {
    const { name, request } = exchange;
    it(`${name}: ${request.method} ${request.path}`, async () => {
      const { ours, recorded } = await replay.play(exchange);
      expect(ours.status, ours.text).toBe(recorded.status);
      expectHeaders(exchange, recorded, ours);
      const tolerance = {
        score: /sparse|weighted/.test(name) ? SPARSE_SCORE : OTHER_SCORE,
        kindOnly: KIND_ONLY[name]?.keys ?? [],
        ...(name in FIGURES ? { figures: true, anything: ANYTHING } : {}),
      };
      expect(differences(recorded.body, ours.body, tolerance), ours.text).toEqual([]);
    });
  }
});

function expectHeaders({ request }: Exchange, recorded: Exchange['response'], ours: Answer): void {
  for (const name of ['content-type', 'x-elastic-product', 'location']) {
    expect(ours.headers[name] ?? '', name).toBe(recorded.headers[name] ?? '');
  }
  // The recording kept no others, but its README names these.
  expect(ours.headers['x-opaque-id']).toBe(request.headers?.['x-opaque-id']);
  const options = request.method === 'OPTIONS' ? 'PUT, GET, DELETE, HEAD' : undefined;
  const allowed = options ?? /allowed: \[(.*)\]/.exec(recorded.status === 405 ? ours.text : '')?.[1];
  const methods = ours.headers['allow'];
  expect(typeof methods === 'string' ? methods.split(/, ?/).sort() : methods).toEqual(allowed?.split(', ').sort());
}
