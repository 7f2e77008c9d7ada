import { expect } from 'vitest';

import type { RunningServer } from './server.js';

export const SPARSE = '.elser-2-elasticsearch';
export const DENSE = '.all-minilm-l6-v2-elasticsearch';

const SUBJECTS = [
  'The whale',
  'A volcano',
  'The baker',
  'An old clock',
  'The train',
  'A red stamp',
  'The river',
  'A poet',
];
const DEEDS = [
  'sleeps in the harbour',
  'wakes the village',
  'counts the coins',
  'crosses the border',
  'waits for rain',
];

/** A short text that no other number has. */
export function textOf(number: number): string {
  const subject = SUBJECTS[number % SUBJECTS.length] ?? '';
  return `${subject} ${DEEDS[number % DEEDS.length] ?? ''} for the ${String(number)}th time.`;
}

/** Makes an index whose field `body` the sparse model fills, with documents of the numbers below `count`. */
export async function fill(server: RunningServer, index: string, count: number): Promise<void> {
  const mappings = { properties: { n: { type: 'integer' }, body: { type: 'semantic_text', inference_id: SPARSE } } };
  const made = await server.request('PUT', `/${index}`, { mappings, settings: { refresh_interval: '100ms' } });
  expect(made.status, made.text).toBe(200);
  const lines = Array.from({ length: count }, (_, n) => [{ index: { _id: String(n) } }, { n, body: textOf(n) }]).flat();
  const ndjson = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const written = await server.request('POST', `/${index}/_bulk?refresh=true`, ndjson);
  expect(written.body.errors, written.text).toBe(false);
}

/** The field `body` of an index, as `_ext/model` shows it. */
export async function fieldOf(server: RunningServer, index: string): Promise<any> {
  const answer = await server.request('GET', `/${index}/_ext/model`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body[index].fields.body;
}

/** Waits until the change of the field `body` is in a state. */
export async function until(server: RunningServer, index: string, state: string, ms = 60_000): Promise<any> {
  for (const end = Date.now() + ms; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const field = await fieldOf(server, index);
    if (field.change?.state === state) return field;
    expect(Date.now(), `not ${state}: ${JSON.stringify(field)}`).toBeLessThan(end);
  }
}

/** Ids of all documents that have a vector of a kind in `body`, sorted. */
export async function found(server: RunningServer, index: string, kind: 'sparse' | 'dense'): Promise<string[]> {
  const text = SUBJECTS.map((subject) => `${subject} time`).join(' ');
  const query =
    kind === 'sparse'
      ? { sparse_vector: { field: 'body', query: text } }
      : {
          knn: {
            field: 'body',
            k: 5000,
            num_candidates: 5000,
            query_vector_builder: { text_embedding: { model_text: text } },
          },
        };
  const answer = await server.request('POST', `/${index}/_search`, { query, size: 5000, _source: false });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body._shards.failed).toBe(0);
  return answer.body.hits.hits.map((hit: { _id: string }) => hit._id).sort();
}

/** Ids of all documents, sorted. */
export async function all(server: RunningServer, index: string): Promise<string[]> {
  await server.request('POST', `/${index}/_refresh`);
  const query = { match_all: {} };
  const answer = await server.request('POST', `/${index}/_search`, { query, size: 5000, _source: false });
  return answer.body.hits.hits.map((hit: { _id: string }) => hit._id).sort();
}
