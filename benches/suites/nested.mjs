// Passages as nested objects of documents against the same passages as documents of their own, over HTTP: one server, the vectors that
// the embedded model makes, the same questions in turns. Every answer is compared with what the passages' own scores say: the documents
// of the best passages, each with its best one.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { StepFailed } from '../../scripts/lib/process.mjs';
import { fill, startSparrow } from '../lib/server.mjs';
import { median } from '../lib/statistics.mjs';
import { Vectors } from '../serving/corpus.mjs';

export const title = 'nested passages beside flat ones';

const SIZES = {
  smoke: { passages: 300, questions: 20, rounds: 1 },
  quick: { passages: 10_000, questions: 200, rounds: 3 },
  full: { passages: 50_000, questions: 500, rounds: 3 },
};
/** Passages of a document. */
const PASSAGES = 5;
const HITS = 10;
const TARGET = { at_most: 1.5 };
const SETTINGS = { number_of_replicas: 0, refresh_interval: '-1' };
const FLAT = { t: { type: 'sparse_vector' }, of: { type: 'keyword' }, group: { type: 'keyword' } };
const NESTED = { group: { type: 'keyword' }, p: { type: 'nested', properties: { t: { type: 'sparse_vector' } } } };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { passages, questions, rounds } = SIZES[context.size];
  const vectors = new Vectors((await context.vectors('texts', passages)).prefix);
  const asked = new Vectors((await context.vectors('questions', questions)).prefix);
  const data = mkdtempSync(join(tmpdir(), 'sparrow-nested-'));
  const { request, stop } = await startSparrow(data);
  try {
    const group = (document) => `g${document % 10}`;
    const flat = Array.from({ length: passages }, (_, n) => {
      const document = Math.floor(n / PASSAGES);
      return { _id: String(n), t: vectors.row(n), of: String(document), group: group(document) };
    });
    const nested = Array.from({ length: passages / PASSAGES }, (_, document) => ({
      _id: String(document),
      group: group(document),
      p: Array.from({ length: PASSAGES }, (_, n) => ({ t: vectors.row(document * PASSAGES + n) })),
    }));
    const seconds = {
      flat: await fill(request, 'flat', flat, { settings: SETTINGS, mappings: { properties: FLAT } }),
      nested: await fill(request, 'nested', nested, { settings: SETTINGS, mappings: { properties: NESTED } }),
    };
    for (const index of ['flat', 'nested']) await request('POST', `/${index}/_forcemerge?max_num_segments=1`);
    const filter = [{ term: { group: 'g3' } }];
    const forms = [
      { what: 'the best documents', restrict: (query) => query },
      { what: 'the same with a filter on the document', restrict: (query) => ({ bool: { must: [query], filter } }) },
    ];
    const rows = [];
    for (const { what, restrict } of forms) {
      const times = { flat: [], nested: [] };
      for (let round = 0; round < rounds; round++) {
        for (let n = 0; n < asked.rows; n++) {
          const tokens = asked.row(n);
          const clause = (field) => ({ sparse_vector: { field, query_vector: tokens } });
          const inside = { nested: { path: 'p', score_mode: 'max', query: clause('p.t') } };
          const take = async (index, query) => {
            const begun = performance.now();
            const answer = await request('POST', `/${index}/_search`, {
              size: HITS,
              _source: false,
              query: restrict(query),
            });
            times[index].push(performance.now() - begun);
            return answer.hits.hits;
          };
          // Which of the two is first changes from question to question.
          const order = n % 2 === 0 ? ['flat', 'nested'] : ['nested', 'flat'];
          const found = {};
          for (const index of order) found[index] = await take(index, index === 'flat' ? clause('t') : inside);
          if (round === 0) await check(request, restrict(clause('t')), found.nested);
        }
      }
      rows.push({
        what: `${what}, ${passages.toLocaleString('en-US')} passages, ${PASSAGES} in a document, p50`,
        against: 'flat passages, the best ones',
        unit: 'ms',
        sparrow: median(times.nested),
        peer: median(times.flat),
        target: context.size === 'full' ? TARGET : null,
        checked: `documents and scores of ${asked.rows} questions with the best passages of an exhaustive list`,
      });
    }
    const rate = (index) => passages / seconds[index];
    rows.push({
      what: `writing ${passages.toLocaleString('en-US')} passages by bulks`,
      against: 'flat passages',
      unit: 'passages/s',
      sparrow: rate('nested'),
      peer: rate('flat'),
      checked: 'all documents are counted',
    });
    return { rows };
  } finally {
    await stop();
    rmSync(data, { recursive: true, force: true });
  }
}

/** Compares hits with the documents of the passages that an index of passages finds, each with its best one. */
async function check(request, query, hits) {
  const body = { size: HITS * PASSAGES, _source: ['of'], query };
  const best = new Map();
  for (const { _score: score, _source: source } of (await request('POST', '/flat/_search', body)).hits.hits) {
    if (!best.has(source.of)) best.set(source.of, score);
  }
  const expected = [...best.values()].slice(0, HITS);
  const scores = hits.map((hit) => hit._score);
  const own = hits.every((hit) => !best.has(hit._id) || best.get(hit._id) === hit._score);
  if (JSON.stringify(scores) !== JSON.stringify(expected) || !own) {
    throw new StepFailed(`nested passages score ${JSON.stringify(scores)}, flat ones ${JSON.stringify(expected)}`);
  }
}
