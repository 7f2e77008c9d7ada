// Requests that a server works on for longer than a second, and what stops them: their client leaves, their time is over, their task is
// cancelled. `cancel.mjs` measures how long the process goes on then, `test/e2e/cancellation.test.ts` holds it to a bound.
import { many, should } from './expensive-requests.mjs';
import { sleep, untilIdle } from './idle.mjs';
import { requestOf } from './memory.mjs';

const search = (body) => ['/many/_search', body];
const all = { match_all: {} };
const clauses = (n) => should(n, (at) => ({ range: { n: { gte: -at } } })).query;
const TERMS = { field: 'k', size: 20_000 };
const WORDS = many(100_000, (at) => `w${at}`).join(' ');

/** When what is still worked on is to be seen among the tasks, and a request that is to be cancelled is. */
const SEEN_MS = 1200;
/** A client that leaves lets somebody look at the tasks first. */
const LOOK_MS = 500;
const TIMEOUT_MS = 500;
/** When it is no longer waited for an answer or the end of the work. */
const PATIENCE_MS = 30_000;

/**
 * They are about the world of `memory-world.mjs`. A job goes on without its client, so it can only be cancelled.
 *
 * @type {[name: string, call: () => import('./memory-rows.mjs').Call, isJob?: boolean][]}
 */
export const LONG_ROWS = [
  [
    '`date_histogram` with the longest format that is possible',
    () => {
      const format = 'yyyy-MM-dd '.repeat(18);
      const metrics = many(20, (at) => [`m${at}`, { max: { field: 'd', format } }]);
      const of = { field: 'd', fixed_interval: '1d', format };
      return search({ size: 0, aggs: { a: { date_histogram: of, aggs: Object.fromEntries(metrics) } } });
    },
  ],
  [
    'formats of dates in 20,000 buckets',
    () => {
      const max = { max: { field: 'd', format: "yyyy-MM-dd'T'HH:mm:ss.SSSXXX ".repeat(6) } };
      return search({
        size: 0,
        aggs: { a: { terms: TERMS, aggs: Object.fromEntries(many(20, (at) => [`m${at}`, max])) } },
      });
    },
  ],
  [
    '`explain` of 1,000 clauses over 250 hits',
    () => search({ query: clauses(1000), size: 250, explain: true, _source: false }),
  ],
  [
    '`explain` of 50 clauses over 5,000 hits',
    () => search({ query: clauses(50), size: 5000, explain: true, _source: false }),
  ],
  [
    '`top_hits` with `explain` in 20,000 buckets',
    () =>
      search({
        size: 0,
        query: clauses(50),
        aggs: { a: { terms: TERMS, aggs: { t: { top_hits: { size: 1, explain: true, _source: false } } } } },
      }),
  ],
  [
    'highlights in 10,000 hits',
    () =>
      search({
        size: 10_000,
        query: { match: { f: 'red the fox' } },
        highlight: { fields: Object.fromEntries(many(50, (at) => [`f${'*'.repeat(at)}`, {}])) },
      }),
  ],
  [
    '`percentiles` in 20,000 buckets',
    () =>
      search({
        size: 0,
        aggs: {
          a: { terms: TERMS, aggs: { p: { percentiles: { field: 'n', percents: many(200, (at) => at / 2) } } } },
        },
      }),
  ],
  [
    '1,000 `filters` that are patterns',
    () =>
      search({ size: 0, aggs: { a: { filters: { filters: many(1000, (at) => ({ wildcard: { k: `*${at}*` } })) } } } }),
  ],
  [
    '8,000 functions of a score',
    () =>
      search({
        query: {
          function_score: {
            query: all,
            functions: many(8000, (at) => ({ filter: { range: { n: { gte: at } } }, weight: 2 })),
          },
        },
      }),
  ],
  [
    '100 groups with 100 lists of `inner_hits` each',
    () =>
      search({
        size: 100,
        collapse: { field: 'k', inner_hits: many(100, (at) => ({ name: `i${at}`, size: 100, _source: false })) },
      }),
  ],
  [
    '`inner_hits` by a pattern in 10,000 hits',
    () =>
      search({
        size: 10_000,
        query: {
          nested: {
            path: 'o',
            query: { wildcard: { 'o.k': '*1*_*' } },
            score_mode: 'sum',
            inner_hits: { highlight: { fields: { 'o.*': {} } } },
          },
        },
      }),
  ],
  [
    '`_rank_eval` of 1,000 requests',
    () => [
      '/many/_rank_eval',
      {
        requests: many(1000, (at) => ({
          id: `r${at}`,
          request: { size: 1000, query: clauses(20) },
          ratings: [{ _index: 'many', _id: '1', rating: 1 }],
        })),
        metric: { precision: { k: 1000 } },
      },
    ],
  ],
  [
    '`_msearch` of 1,000 searches',
    () => ['/many/_msearch', `{}\n${JSON.stringify({ size: 10, query: clauses(200) })}\n`.repeat(1000)],
  ],
  [
    '`_mtermvectors` of 300 artificial documents',
    () => [
      '/many/_mtermvectors',
      { docs: many(300, () => ({ doc: { f: WORDS.slice(0, 50_000) }, term_statistics: true })) },
    ],
  ],
  [
    '`_termvectors` of a long artificial document',
    () => [
      '/many/_termvectors',
      { doc: { f: many(10, (at) => WORDS.replaceAll('w', `w${at}x`)).join(' ') }, term_statistics: true },
    ],
  ],
  ['`_mget` of a document of 1 MB, 400 times', () => ['/many/_mget', { ids: many(400, () => 'big') }]],
  [
    '`_simulate` of patterns',
    () => [
      '/_ingest/pipeline/_simulate',
      {
        pipeline: {
          processors: many(100, () => ({
            gsub: { field: 'a', pattern: '(x+x+)+y', replacement: 'z', ignore_failure: true },
          })),
        },
        docs: many(100, () => ({ _source: { a: 'x'.repeat(2000) } })),
      },
    ],
  ],
  [
    '`_update_by_query` with many clauses',
    () => [
      '/many/_update_by_query?conflicts=proceed',
      {
        query: {
          function_score: { query: all, functions: clauses(3000).bool.should.map((filter) => ({ filter, weight: 2 })) },
        },
      },
    ],
    true,
  ],
  ['`_reindex`', () => ['/_reindex', { source: { index: 'many', size: 10 }, dest: { index: 'copy' } }], true],
];

/** A way to stop: what it does, and whether it can stop a request. */
const WAYS = {
  leave: (call, isJob) => !isJob,
  // As in Elasticsearch it is on the search itself: hits that it found in time are shown, however long this takes. Hits inside hits are
  // searches of their own.
  timeout: ([path, body], isJob) =>
    !isJob &&
    path.endsWith('/_search') &&
    !JSON.stringify(body).includes('top_hits') &&
    (body.size === 0 || JSON.stringify(body).includes('inner_hits')),
  cancel: () => true,
};

/**
 * Every way to stop every long request.
 *
 * @type {[name: string, way: string, call: () => import('./memory-rows.mjs').Call][]}
 */
export const STOPS = LONG_ROWS.flatMap(([name, call, isJob = false]) =>
  Object.entries(WAYS)
    .filter(([, stops]) => stops(call(), isJob))
    .map(([way]) => [name, way, call]),
);

/** Everything that runs, but the look at it. */
async function tasks(target) {
  const { text } = await target.send({ method: 'GET', path: '/_tasks?group_by=none' });
  return JSON.parse(text).tasks.filter(({ action }) => !action.startsWith('cluster:monitor/tasks'));
}

/**
 * Sends a request and stops it, after so many milliseconds where it has no time of its own.
 *
 * @param {import('../fuzz/run.mjs').Target} target
 * @returns `answered`: before it was to stop; `refused`: with this answer; `seen`: among the tasks, of one that runs for a second; for how
 *   long the process went on
 */
export async function stopped(target, call, way, afterMs = SEEN_MS) {
  const [{ path, ...request }, begun] = [requestOf(call), performance.now()];
  const leaves = way === 'leave';
  let answer;
  let isArriving = false;
  const sent = target
    .send(
      { ...request, path: way === 'timeout' ? `${path}?timeout=${TIMEOUT_MS}ms` : path },
      leaves ? afterMs + LOOK_MS : PATIENCE_MS,
      () => (isArriving = true),
    )
    .then((outcome) => (answer = outcome));
  let [stop, seen] = [begun + TIMEOUT_MS, undefined];
  if (way !== 'timeout') {
    await sleep(afterMs);
    const running = answer === undefined ? await tasks(target) : [];
    // What was answered meanwhile shows nothing, though much of the answer may still be on its way.
    if (!isArriving && afterMs >= SEEN_MS) seen = running.length > 0;
    stop = performance.now();
    if (way === 'cancel') {
      const cancelled = running.map(({ node, id }) => ({ method: 'POST', path: `/_tasks/${node}:${id}/_cancel` }));
      for (const one of cancelled) await target.send(one);
    }
  }
  const { status, text = '' } = await sent;
  // A request that a limit refuses is not stopped, however long it takes to find that out.
  const refused = status >= 400 && !text.includes('task_cancelled_exception') ? text : '';
  const waited = leaves ? 0 : performance.now() - stop;
  const answered = leaves ? status !== 'hang' : waited <= 0;
  if (answered) return { answered, refused, seen, wentOnMs: 0 };
  return { answered, refused, seen, wentOnMs: waited + (await untilIdle(target.pid, PATIENCE_MS)) };
}
