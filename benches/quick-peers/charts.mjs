// The five charts of `--quick-peers`, as pictures and as tables, from what was measured.
import { bars, figure } from '../lib/svg.mjs';

const OWN = 'Sparrow';
const isOwn = (name) => name.startsWith(OWN);
const colour = (name) => (isOwn(name) ? 0 : 1);
const number = (value) => value.toLocaleString('en-US');
const searchesOf = (results) => results.flatMap(({ searches }) => searches);

/** Settings in a few words. */
const settingsOf = (settings = {}) =>
  Object.entries(settings)
    .filter(([, value]) => typeof value !== 'object')
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

/** Rates of building, the fastest first. */
const rates = (results) =>
  results
    .filter(({ index }) => index !== undefined)
    .map(({ name, index }) => ({ name, value: index.count / index.seconds, unit: '/s', colour: colour(name) }))
    .sort((one, other) => other.value - one.value);

const times = (searches, short = (search) => search.name) =>
  searches
    .filter(({ p50 }) => p50 !== undefined)
    .map((search) => ({ name: short(search), value: search.p50, unit: 'ms', colour: colour(search.name) }));

const share = (value) => (value === undefined ? '' : `, ${(100 * value).toFixed(1)}%`);

/** Which settings a search has: of Seismic those that its authors publish with which index, or the fastest that reach a recall. */
const searchName = ({ name, source, why, settings }) =>
  [name, ...(source === undefined ? [settings?.algorithm] : [source, why])].filter(Boolean).join(', ');

/** Of an engine whose settings all find the same, the fastest alone. */
function shown(searches) {
  const fastest = new Map();
  for (const search of searches) {
    const key = search.source === undefined ? search.name : searchName(search);
    if (!(fastest.get(key)?.p50 <= search.p50)) fastest.set(key, search);
  }
  return [...fastest.values()];
}

const withShare = ({ name, share: right }) => `${name}${share(right)}`;

/**
 * @param {Record<string, { results: import('./measure.mjs').Measured[], shape: any, notes?: string[] } | { failed: string }>} measured by chart
 * @returns {{ name: string, title: string, svg?: string, table: string[][], notes: string[] }[]}
 */
export function drawCharts({ sparse, words, dense, hybrid }) {
  const charts = [
    chart('sparse', 'Sparse vectors: the ten best', sparse, ({ results, shape }) => ({
      panels: [
        {
          title: `Ten best of ${number(shape.rows)} sparse vectors, ${shape.terms} terms each, one thread`,
          note: 'median time of a question and the share of right answers; shorter is better',
          bars: times(shown(searchesOf(results)), (search) => `${searchName(search)}${share(search.share)}`),
        },
      ],
      notes: [
        `${number(shape.asked)} questions, each of which touches ${number(shape.postings)} entries of documents in the mean`,
        'Sparrow is called through its addon, JSON in and out, and the others from Python, one call a question; BMP and PISA keep 8 bits of a ' +
          'weight, and get documents in the order in which they come: what their best is with documents reordered is unknown here',
        ...batchNotes(results, shape),
      ],
    })),
    chart('words', 'Words: any of a question', words, ({ results, shape }) => ({
      panels: [
        {
          title: `Any word of a question, ${number(shape.rows)} texts of ${shape.words} words, one thread`,
          note: 'median time, and the share of the ten that are BM25’s; shorter is better',
          bars: times(searchesOf(results.filter(({ isJs }) => !isJs)), withShare),
        },
        {
          title: 'The same, engines in JavaScript',
          note: 'the share says how much of the ten is BM25’s, where they rank in another way',
          bars: times(searchesOf(results.filter(({ name, isJs }) => isJs || isOwn(name))), withShare),
        },
      ],
      notes: [
        `${number(shape.asked)} questions; k1 1.2 and b 0.75; engines of JavaScript rank by formulas of their own, so that a low share is no error of theirs`,
        'bm25s does not shorten lengths to four bits, as Lucene, tantivy and Sparrow do: that is what its share lacks',
      ],
    })),
    chart('dense', 'Dense vectors: nearest ten', dense, ({ results, shape }) => ({
      panels: [
        {
          title: `Nearest ten of ${number(shape.rows)} vectors of ${shape.dims} dimensions, one thread`,
          note: 'median time at a recall of 0.95, between two widths of a search; shorter is better',
          bars: times(searchesOf(results)),
        },
      ],
      notes: [
        `${number(shape.asked)} questions; graphs with M 16 and efConstruction 200, Sparrow’s with m 16 and its default`,
        'Sparrow is called through its addon with 384 numbers as JSON, the others from Python with an array',
      ],
    })),
    chart('ingest', 'Building an index', building({ words, sparse, dense }), ({ results }) => ({
      panels: KINDS.flatMap(([kind, what]) => {
        const of = results.filter((each) => each.kind === kind && each.index !== undefined);
        const note = 'until they can be searched, in one segment where there are segments; longer is better';
        return of.length === 0 ? [] : [{ title: `${what} a second`, note, bars: rates(of) }];
      }),
      notes: [
        'Sparrow writes a log, keeps documents by id and merges in the background; the others build in memory, Lucene and tantivy on one thread',
      ],
    })),
    chart('hybrid', 'One hybrid question', hybrid, ({ results, notes }) => ({
      panels: [
        {
          title: 'A question by words, sparse and dense vectors',
          note: 'median time; Sparrow over HTTP, with encoding; shorter is better',
          bars: times(searchesOf(results)),
        },
      ],
      notes,
    })),
  ];
  return charts;
}

const KINDS = [
  ['words', 'Texts'],
  ['sparse', 'Sparse vectors'],
  ['dense', 'Dense vectors'],
];

/** What each engine took to build, of the charts that there are. */
function building(parts) {
  const results = KINDS.flatMap(([kind]) => (parts[kind].results ?? []).map((each) => ({ ...each, kind })));
  return results.length === 0 ? { failed: 'nothing was built' } : { results };
}

function chart(name, title, part, draw) {
  if (part.failed !== undefined) return { name, title, table: [], notes: [`not drawn: ${part.failed}`] };
  const { panels, notes } = draw(part);
  const { results } = part;
  const missing = results
    .filter(({ skipped }) => skipped !== undefined)
    .map(({ name: engine, skipped }) => `${engine} is not there: ${skipped}`);
  const table = name === 'ingest' ? ingestTable(results) : searchTable(results);
  const drawn = panels.filter(({ bars: each }) => each.length > 0);
  return { name, title, svg: bars(title, drawn), table, notes: [...notes, ...new Set(missing)] };
}

/** What differs from what Seismic's authors publish, with the figures that show it. */
function batchNotes(results, shape) {
  const searches = searchesOf(results).filter(({ batch }) => batch !== undefined);
  if (searches.length === 0) return [];
  const means = searches.map(
    ({ source, why, batch, share: right }) =>
      `${figure(batch)} ms (${source}, ${why}, ${(100 * right).toFixed(1)}% right)`,
  );
  return [
    `Seismic in one batch call on one thread, mean of a question: ${means.join('; ')}; Sparrow’s mean, call by call, is ` +
      `${figure(searchesOf(results).find(({ name }) => isOwn(name)).mean)} ms`,
    'Seismic’s authors publish 0.303 ms at 95.7% and 0.531 ms at 97.2% for 8.8 million passages of MS MARCO: what differs is the machine, the ' +
      `vectors (those here have ${shape.terms} terms, and are not SPLADE’s own) and the call from Python, which a batch has once`,
  ];
}

const ms = (value) => (value === undefined ? '' : `${figure(value)} ms`);

function searchTable(results) {
  return [
    ['engine', 'p50', 'p95', 'mean', 'right answers', 'settings'],
    ...searchesOf(results).map((search) => [
      ...[searchName(search), ms(search.p50), ms(search.p95), ms(search.mean)],
      ...[search.share === undefined ? '' : `${(100 * search.share).toFixed(2)}%`, settingsOf(search.settings)],
    ]),
  ];
}

function ingestTable(results) {
  return [
    ['engine', 'of', 'a second', 'documents', 'bytes'],
    ...results
      .filter(({ index }) => index !== undefined)
      .map(({ name, kind, index: { count, seconds, bytes } }) => [
        ...[name, kind, figure(count / seconds), number(count), bytes === undefined ? '' : number(bytes)],
      ]),
  ];
}
