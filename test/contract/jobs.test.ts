// Replays pipelines, reindex and tasks as OpenSearch 2.19.1 answered them: the recording of Elasticsearch 8 lacks those modules.
// Everything is played, since the later exchanges build on the earlier ones; compared is what the recording is meant for.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { differences } from './compare.js';
import { type Exchange, Replay, readExchanges } from './replay.js';

const RECORDING = new URL('../fixtures/recorded/opensearch-2.19.1.jsonl', import.meta.url);

const COMPARED = new Set([
  ...['put-pipeline', 'put-pipeline-bad-processor', 'put-pipeline-missing-prop', 'get-pipeline', 'get-pipelines-all'],
  ...['get-pipeline-missing', 'delete-pipeline-missing', 'reindex-missing-source', 'reindex-missing-source-async'],
  ...['reindex-empty', 'reindex-same', 'reindex-sync', 'reindex-op-type-create-conflicts'],
  // Not `reindex-op-type-create-proceed`: Elasticsearch goes on past `max_docs` over conflicts, and so do we.
  ...['reindex-async', 'reindex-async-2', 'reindex-async-fail', 'task-not-found'],
  ...['task-unknown-node', 'task-malformed-id', 'delete-pipeline'],
  ...['update-by-query', 'task-cancel-not-found'],
]);

/** What is not documented of Elasticsearch, or differs there. */
const IGNORED = /^(?:failures\[\d+\]\.cause\.(?:shard|index_uuid)|.*index_uuid|.*\.shard)/;

describe('the recorded answers of OpenSearch 2.19.1 about jobs', () => {
  const exchanges = readExchanges(RECORDING);
  const last = exchanges.findIndex(({ name }) => name === 'delete-pipeline');
  let server: RunningServer;
  let replay: Replay;

  beforeAll(async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    replay = new Replay(server);
    const lines = Array.from({ length: 2000 }, (_, id) => `{"index":{"_id":"${String(id)}"}}\n{"n":${String(id)}}\n`);
    expect((await server.request('POST', '/many/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
  });

  afterAll(async () => {
    await server.stop();
  });

  for (const exchange of exchanges.slice(0, last + 1).filter(plays)) {
    const { name, request } = exchange;
    it(`${name}: ${request.method} ${request.path}`, async () => {
      const { ours, recorded } = await replay.play(exchange);
      expect(ours.status, ours.text).toBeLessThan(600);
      if (!COMPARED.has(name)) return;
      expect(ours.status, ours.text).toBe(recorded.status);
      const found = differences(inOrder(recorded.body), inOrder(ours.body), { score: 1e-5 }).filter(
        (line) => !IGNORED.test(line),
      );
      expect(found, ours.text).toEqual([]);
    });
  }
});

/** Failures in the order of their ids: which document is met first is nobody's promise. */
function inOrder(body: unknown): unknown {
  const { failures } = body as { failures?: { id: string }[] };
  if (failures === undefined) return body;
  return { ...(body as object), failures: failures.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** Searches, `_cat` and the like change nothing. */
function plays({ name, request }: Exchange): boolean {
  return COMPARED.has(name) || request.method !== 'GET';
}
