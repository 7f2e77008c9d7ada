// docs/fields.md lists what the engine takes and what it refuses: each name is tried.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { read } from './pages.js';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});
afterAll(async () => {
  await server.stop();
});

/** What some cannot do without. */
const NEEDED: Readonly<Record<string, object>> = {
  scaled_float: { scaling_factor: 10 },
  dense_vector: { dims: 3 },
  alias: { path: 'other' },
  join: { relations: { question: 'answer' } },
  token_count: { analyzer: 'standard' },
  aggregate_metric_double: { metrics: ['min'], default_metric: 'min' },
  simple_pattern: { pattern: '[a-z]+' },
  simple_pattern_split: { pattern: ' ' },
  char_group: { tokenize_on_chars: ['whitespace'] },
  common_grams: { common_words: ['the'] },
  keep: { keep_words: ['one'] },
  keep_types: { types: ['<NUM>'] },
  keyword_marker: { keywords: ['one'] },
  stemmer_override: { rules: ['a => b'] },
  synonym: { synonyms: ['a, b'] },
  synonym_graph: { synonyms: ['a, b'] },
  pattern_capture: { patterns: ['(a)'] },
  pattern_replace: { pattern: 'a', replacement: 'b' },
  mapping: { mappings: ['a => b'] },
  multiplexer: { filters: ['lowercase'] },
  elision: { articles: ['l'] },
};

const defined = (type: string): object => ({ type, ...NEEDED[type] });

/** A request about one name, by the heading of its list. */
const TRIES: Readonly<Record<string, (name: string) => readonly [method: string, path: string, body: object]>> = {
  'Field types': (name) => [
    'PUT',
    `/fields-${name}`,
    { mappings: { properties: { other: { type: 'keyword' }, field: defined(name) } } },
  ],
  Analyzers: (analyzer) => ['POST', '/_analyze', { analyzer, text: 'one two' }],
  Tokenizers: (name) => ['POST', '/_analyze', { tokenizer: defined(name), text: 'one two' }],
  'Token filters': (name) => ['POST', '/_analyze', { tokenizer: 'standard', filter: [defined(name)], text: 'one two' }],
  'Character filters': (name) => [
    'POST',
    '/_analyze',
    { tokenizer: 'standard', char_filter: [defined(name)], text: 'one two' },
  ],
};

const page = read('docs/fields.md');

describe.each(Object.entries(TRIES))('%s', (heading, request) => {
  const section = new RegExp(`^## ${heading}$([^]*?)(?=^## |$(?![^]))`, 'm').exec(page)?.[1] ?? '';
  const namesIn = (text: string): string[] => [...text.matchAll(/`([a-z_0-9]+)`/g)].map(([, name = '']) => name);
  // The first column of a table says what its names are for.
  const there = namesIn(section.match(/^\| .*\|$/gm)?.join('\n') ?? '');
  const refused = namesIn(/^Refused: [^]*?\.\n/m.exec(section)?.[0] ?? '');
  const status = async (name: string): Promise<number> => (await server.request(...request(name))).status;

  it('are there', async () => {
    expect(there.length).toBeGreaterThan(2);
    for (const name of there) expect([name, await status(name)]).toEqual([name, 200]);
  });

  it('are refused', async () => {
    expect(refused.length).toBeGreaterThan(1);
    for (const name of refused) expect([name, await status(name)]).toEqual([name, 400]);
  });
});
