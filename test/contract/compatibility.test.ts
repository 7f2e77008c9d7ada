// Keeps docs/compatibility.md true, and the table of docs/queries.md: what they name is there, and what is there is named.
import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { ENDPOINTS } from '@sparrow-search/server';
import { KINDS } from '../support/oracle/queries.js';
import { kindsOf } from '../support/declared-kinds.js';
import { namesIn } from '../support/rust-names.js';
import { NOT_COVERED } from './coverage.js';
import { readExchanges } from './replay.js';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
const SEARCH = 'crates/search-body/src/';
const QUERY = 'crates/query/src/';
const RECORDED = 'test/contract/recorded.test.ts';
const exchanges = readExchanges(new URL('test/fixtures/recorded/elasticsearch-8.19.21.jsonl', ROOT));

interface Row {
  readonly forms: readonly string[];
  readonly state: string;
  readonly what: string;
  readonly file: string;
  readonly title: string;
}

/** The tables of the page by the heading above them; that of queries is on their own page. */
const tables = new Map(
  read('docs/compatibility.md')
    .split(/^## /m)
    .slice(1)
    .map((part): [string, Row[]] => [part.split('\n', 1)[0] ?? '', rowsOf(part)]),
);
tables.set('Queries', rowsOf(read('docs/queries.md').split('\n## What differs from Elasticsearch\n')[1] ?? ''));
const rows = [...tables.values()].flat();
const table = (heading: string): readonly Row[] => tables.get(heading) ?? [];
const forms = (heading: string, chosen: (row: Row) => boolean = () => true): string[] =>
  table(heading)
    .filter(chosen)
    .flatMap((row) => row.forms)
    .sort();
const refused = ({ state }: Row): boolean => state === 'refused';
const answered = (row: Row): boolean => !refused(row);

function rowsOf(part: string): Row[] {
  const lines = part.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) => {
    const cells = line.slice(1, -1).split(' | ');
    const [form = '', state = '', what = '', test = ''] = cells.map((cell) => cell.trim());
    const [, file = '', title = ''] = /^`([^`]+)` `([^`]+)`$/.exec(test) ?? [];
    expect(cells.length === 4 && file !== '', line).toBe(true);
    return { forms: [...form.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''), state, what, file, title };
  });
}

/** The source of a test, with the table before an `it.each`; undefined if there is no such test. */
function testSource(file: string, title: string): string | undefined {
  if (file === RECORDED) {
    if (title in NOT_COVERED) return undefined;
    const found = exchanges.find(({ name }) => name === title);
    return found && JSON.stringify(found);
  }
  const source = read(file);
  if (file.endsWith('.rs')) {
    const start = new RegExp(`^#\\[test\\]\\n(?:#\\[.*\\]\\n)*fn ${title}\\(`, 'm').exec(source)?.index;
    return start === undefined ? undefined : /^[^]*?\n\}\n/.exec(source.slice(start))?.[0];
  }
  const quoted = new RegExp(`\\(\\s*'${title.replaceAll(/[.*+?^${'${}'}()|[\\]\\\\]/g, '\\$&')}',`);
  return source
    .split(/^ *(?=(?:it|it\.each)\()/m)
    .slice(1)
    .find((test) => quoted.test(test));
}

/** Whether a test is made for every kind that the naive evaluators know, which it does not name. */
const isOfKinds = (source: string): boolean => source.startsWith('it.each(KINDS)(');

/** Words of a source, as names of fields and strings are written. */
const speaksOf = (source: string, name: string): boolean => new RegExp(`(?<![\\w.])${name}(?![\\w])`).test(source);

describe('docs/compatibility.md', () => {
  it('has rows with a known state, and says what differs', () => {
    expect(rows.length).toBeGreaterThan(150);
    for (const {
      forms: [form],
      state,
      what,
    } of rows) {
      expect(['yes', 'differs', 'refused'], form).toContain(state);
      if (state === 'differs') expect(what, form).not.toBe('');
    }
  });

  it.each(rows.map((row) => [row.forms[0], row] as const))('names a test that is there: %s', (_, row) => {
    expect(testSource(row.file, row.title), `${row.file} ${row.title}`).toBeDefined();
  });

  it.each(['Queries', 'Sections of a search', 'Aggregations', 'Retrievers'])(
    'names tests that speak of %s',
    (heading) => {
      const silent = table(heading)
        .filter(answered)
        .filter(({ forms: names, file, title }) => {
          const source = testSource(file, title) ?? '';
          return !names.every((it) => (isOfKinds(source) ? KINDS.includes(it) : speaksOf(source, it)));
        });
      expect(silent.map(({ forms: names, title }) => `${names.join()}: ${title}`)).toEqual([]);
    },
  );

  it.each([
    ['Queries', 'Query', `${QUERY}kinds/mod.rs`, 'UNSUPPORTED'],
    ['Aggregations', 'Aggregation', `${SEARCH}aggs/parse/mod.rs`, 'ELSEWHERE'],
    ['Retrievers', 'Retriever', `${SEARCH}retriever/parse.rs`, 'REFUSED'],
  ])('has all %s of the declarations', (heading, schema, source, elsewhere) => {
    expect(forms(heading, answered)).toEqual(kindsOf(schema));
    expect(forms(heading, refused)).toEqual(namesIn(read(source), elsewhere).sort());
  });

  it.each([
    [
      'Queries',
      [
        ...['test/api/property-queries.test.ts', 'test/api/property-texts.test.ts'],
        ...['test/api/script-score.test.ts', 'test/api/geo.test.ts'],
      ],
      KINDS,
    ],
    [
      'Aggregations',
      [
        ...['test/api/property-aggregations.test.ts', 'test/api/more-aggregations.test.ts', 'test/api/geo.test.ts'],
        ...['test/api/significant.test.ts', 'crates/aggregations/src/tests/nested.rs'],
      ],
      [],
    ],
  ])('has only %s that are held against a naive evaluator', (heading, files, kinds) => {
    const sources = files.map(read).join('\n');
    const unknown = forms(heading, answered).filter((name) => !kinds.includes(name) && !speaksOf(sources, name));
    expect(unknown).toEqual([]);
  });

  it('has all sections that a search is read by', () => {
    const source = read(`${SEARCH}body.rs`);
    const section = /pub fn section\([^]*?\n {4}\}\n/.exec(source)?.[0] ?? '';
    const arms = [...section.matchAll(/^ +\(((?:"\w+"(?: \| )?)+), /gm)].map((match) => match[1] ?? '');
    const known = new Set(arms.flatMap((arm) => [...arm.matchAll(/"(\w+)"/g)].map((match) => match[1] ?? '')));
    expect(known.size).toBeGreaterThan(25);
    expect(forms('Sections of a search', answered)).toEqual([...known].sort());
    expect(forms('Sections of a search', refused)).toEqual(namesIn(source, 'LATER').sort());
  });

  it('has all endpoints of the route table', () => {
    const named = forms('Endpoints').flatMap((form) => {
      const [, methods = '', path = ''] = /^([A-Z, ]+) (\/.*)$/.exec(form) ?? [];
      return methods.split(', ').map((method) => `${method} ${path}`);
    });
    expect(named.sort()).toEqual(ENDPOINTS.map(({ method, path }) => `${method} ${path}`).sort());
  });
});
