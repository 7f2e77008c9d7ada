// What the requests of `memory-rows.mjs` and `memory-requests.mjs` are about, and the keys that they are sent with.
import { many } from './expensive-requests.mjs';

/** Documents of the index `many`, with two objects each. */
export const DOCUMENTS = 20_000;
/** Indices `i0`, `i1`, …, for requests that say something of each. */
export const INDICES = 60;

/** Indices `wide0`, `wide1`, … with as many fields as an index has by default, each with names of its own. */
export const WIDE = 30;
const WIDE_FIELDS = 990;

/** What a request, and all together, may take; and what the process may have resident then, in MiB. */
export const LIMITS = { 'indices.breaker.request.limit': '800mb', 'indices.breaker.total.limit': '1500mb' };
export const CEILING_MIB = 2200;

const WORDS = ['red', 'green', 'blue', 'fox', 'dog', 'runs', 'sleeps', 'over', 'under', 'the'];

const documentOf = (at) => ({
  k: `v${at}`,
  n: at,
  d: 1_600_000_000_000 + at * 86_400_000,
  f: `w${at} ${many(8, (word) => WORDS[(at * 7 + word * 3) % WORDS.length]).join(' ')}`,
  s: { [WORDS[at % 10]]: 1 + (at % 5), [WORDS[(at + 3) % 10]]: 0.5, all: 0.1 },
  v: many(8, (dim) => Math.sin(at * (dim + 1)) + 0.01),
  o: many(2, (number) => ({
    k: `o${at}_${number}`,
    n: at * 2 + number,
    d: 1_600_000_000_000 + at * 86_400_000,
    f: `w${at} ${WORDS[(at + number) % 10]}`,
    v: [1 + (at % 7), number + 1],
    in: [{ k: `i${at}`, n: number }],
  })),
});

/** Objects of the document that has very many, of which only one index has some. */
const OBJECTS = 9000;

const properties = {
  k: { type: 'keyword' },
  n: { type: 'long' },
  d: { type: 'date' },
  f: { type: 'text' },
  s: { type: 'sparse_vector' },
  v: { type: 'dense_vector', dims: 8 },
  big: { enabled: false },
  o: {
    type: 'nested',
    properties: {
      k: { type: 'keyword' },
      n: { type: 'long' },
      d: { type: 'date' },
      f: { type: 'text' },
      v: { type: 'dense_vector', dims: 2 },
      in: { type: 'nested', properties: { k: { type: 'keyword' }, n: { type: 'long' } } },
    },
  },
};

/** Requests that make the world; the owner sends them. */
export const WORLD = [
  { method: 'PUT', path: '/_cluster/settings', body: { persistent: LIMITS } },
  { method: 'PUT', path: '/many', body: { mappings: { properties } } },
  { method: 'PUT', path: '/written', body: { mappings: { properties } } },
  ...many(INDICES, (at) => ({ method: 'PUT', path: `/i${at}/_doc/1`, body: { k: 'v', f: 'red fox', n: at } })),
  ...many(WIDE, (index) => ({
    method: 'PUT',
    path: `/wide${index}`,
    body: {
      mappings: {
        properties: Object.fromEntries(many(WIDE_FIELDS, (at) => [`field_${index}_${at}`, { type: 'keyword' }])),
      },
    },
  })),
  ...many(4, (part) => ({
    method: 'POST',
    path: '/many/_bulk',
    text: many(DOCUMENTS / 4, (number) => {
      const at = (part * DOCUMENTS) / 4 + number;
      return `{"index":{"_id":"${at}"}}\n${JSON.stringify(documentOf(at))}\n`;
    }).join(''),
  })),
  ...['many', 'written'].map((index) => ({
    method: 'PUT',
    path: `/${index}/_doc/big`,
    body: { k: 'big', big: { text: 'x'.repeat(1 << 20) } },
  })),
  {
    method: 'PUT',
    path: '/many/_doc/objects',
    body: { k: 'objects', o: many(OBJECTS, (at) => ({ k: `o${at}`, n: at, f: 'red fox over the blue dog' })) },
  },
  // Not through a pipeline, and not too many: these are what jobs by query change.
  {
    method: 'POST',
    path: '/written/_bulk',
    text: many(2000, (at) => `{"index":{"_id":"${at}"}}\n${JSON.stringify(documentOf(at))}\n`).join(''),
  },
  { method: 'POST', path: '/_refresh' },
];

/** Keys that have no more than what their requests need. */
export const KEYS = {
  read: { indices: [{ names: ['many', 'i*', 'wide*'], privileges: ['read', 'view_index_metadata'] }] },
  write: {
    cluster: ['monitor', 'manage_pipeline'],
    indices: [
      { names: ['written', 'copy', 'analyzed*'], privileges: ['all'] },
      { names: ['many'], privileges: ['read'] },
    ],
  },
};
