import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { InMemoryTransport } from '@modelcontextprotocol/server';
import { Client } from '@modelcontextprotocol/client';
import { SparrowError } from '@sparrow-search/engine';
import { afterEach, describe, expect, it } from 'vitest';

import { checkOrigin } from './origin.js';
import type { AskOptions, RestInterface } from './rest-interface.js';
import { mcpServer } from './server.js';
import { briefly, slice } from './values.js';

const PACKAGES = fileURLToPath(new URL('../../..', import.meta.url));

/** The source of what a package of the repository exports by a name. */
function sourceOf(name: string): string {
  const [, folder = '', ...entry] = name.split('/');
  const manifest = readFileSync(join(PACKAGES, folder, 'package.json'), 'utf8');
  const { exports } = JSON.parse(manifest) as { exports: Record<string, { default: string }> };
  const compiled = exports[['.', ...entry].join('/')]?.default ?? '';
  return join(PACKAGES, folder, compiled.replace('dist', 'src').replace(/\.js$/, '.ts'));
}

/** What a server loads with a file before anybody asks it anything: all that the file, and what it imports, names in `import … from`. */
function loadedWith(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  if (!existsSync(file)) return seen;
  const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)(?! type)[^;]*? from '([^']+)'/gms);
  for (const [, name = ''] of imports) {
    if (name.startsWith('.')) loadedWith(join(dirname(file), name.replace(/\.js$/, '.ts')), seen);
    else seen.add(name);
    if (name.startsWith('@sparrow-search/') && !name.includes('/model-')) loadedWith(sourceOf(name), seen);
  }
  return seen;
}

describe('the library for the protocol', () => {
  const isOfIt = (name: string): boolean => /modelcontextprotocol|^zod/.test(name);

  const entries = ['http/src/server.ts', 'cli/src/main.ts', 'cli/src/program.ts', 'server/src/index.ts'];
  it.each(entries)('is not loaded with %s', (file) => {
    const loaded = [...loadedWith(join(PACKAGES, file))];
    expect(loaded).toContain('@sparrow-search/engine');
    expect(loaded.filter(isOfIt)).toEqual([]);
  });

  it('is loaded with the first message', () => {
    expect([...loadedWith(join(PACKAGES, 'http/src/mcp/http.ts'))].filter(isOfIt)).toContain(
      '@modelcontextprotocol/server',
    );
  });
});

describe('an origin', () => {
  const checked =
    (origin: string | undefined, host = '127.0.0.1:9200') =>
    (): void => {
      checkOrigin({ header: (name) => ({ origin, host })[name] });
    };

  it.each([undefined, 'http://localhost', 'http://127.0.0.2:1', 'http://[::1]:80'])(
    'of this machine is fine: %s',
    (origin) => {
      expect(checked(origin)).not.toThrow();
    },
  );

  it('that is the server itself is fine with TLS alone', () => {
    expect(checked('https://search.example', 'search.example')).not.toThrow();
    expect(checked('http://search.example', 'search.example')).toThrow('[http://search.example] are refused');
    expect(checked('https://search.example:8443', 'search.example')).toThrow();
  });

  it.each([
    'null',
    '',
    'localhost',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://0x7f.1.example',
  ])('of another site is refused: [%s]', (origin) => {
    expect(checked(origin)).toThrow('are refused');
  });
});

describe('tools over an interface', () => {
  const opened: Client[] = [];

  afterEach(async () => {
    for (const client of opened.splice(0)) await client.close();
  });

  /** Calls a tool over an interface that answers as `answer` says. */
  async function call(answer: (path: string, body: any) => unknown, name: string, args: object): Promise<any> {
    const rest: RestInterface = {
      request: async <T>(_method: string, path: string, { body }: AskOptions = {}) => answer(path, body) as T,
    };
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await mcpServer(rest, false).connect(ours);
    const client = new Client({ name: 'tests', version: '1' });
    opened.push(client);
    await client.connect(theirs);
    return client.callTool({ name, arguments: { ...args } });
  }

  const mapping = {
    notes: {
      mappings: { properties: { body: { type: 'text', copy_to: 'meaning' }, meaning: { type: 'semantic_text' } } },
    },
  };

  it('say of each type of field how it is searched and filtered', async () => {
    const properties = {
      place: { type: 'geo_point' },
      name: { type: 'search_as_you_type' },
      labels: { type: 'flattened' },
    };
    const answer = (path: string): unknown =>
      path.endsWith('_mapping')
        ? { places: { mappings: { properties } } }
        : { hits: { total: { value: 1 }, hits: [] } };
    const { structuredContent } = await call(answer, 'describe_index', { index: 'places' });
    expect(structuredContent.fields).toEqual([
      { name: 'place', type: 'geo_point', filter: false },
      { name: 'name', type: 'search_as_you_type', searched_by: 'words', filter: true },
      { name: 'labels', type: 'flattened', filter: true, note: 'Filters name its keys with a dot: labels.KEY' },
    ]);
    const refused = await call(answer, 'search', { index: 'places', filters: { labels: { wheelchair: 'yes' } } });
    expect([refused.isError, JSON.stringify(refused.content)]).toEqual([
      true,
      expect.stringContaining('the keys of a flattened field are named with a dot'),
    ]);
  });

  it('search by another scale where the model has none of probabilities', async () => {
    const normalizers: (string | undefined)[] = [];
    const { structuredContent } = await call(
      (path, body) => {
        if (path.endsWith('_mapping')) return mapping;
        const { normalizer } = body.retriever.linear;
        normalizers.push(normalizer);
        if (normalizer === 'calibrated') {
          throw new SparrowError(
            '[linear] normalizer [calibrated] needs a [calibration.json]',
            400,
            'illegal_argument_exception',
          );
        }
        expect(body.retriever.linear).not.toHaveProperty('min_score');
        return { hits: { hits: [{ _index: 'notes', _id: '1', _score: 2.5, _source: {} }] } };
      },
      'search',
      { index: 'notes', query: 'x', min_relevance: 0.3 },
    );
    expect(normalizers).toEqual(['calibrated', undefined]);
    expect(structuredContent).toMatchObject({ assessment: 'not_assessed', hits: [{ id: '1', passages: [] }] });
    expect(structuredContent.hits[0]).not.toHaveProperty('relevance');
  });

  it('leave the texts whose passages are shown where they are', async () => {
    let asked: any;
    await call(
      (path, body) => {
        if (path.endsWith('_mapping')) return mapping;
        asked = body;
        return { hits: { hits: [] } };
      },
      'search',
      { index: 'notes', query: 'x', size: 20 },
    );
    expect(asked._source).toEqual({ excludes: ['meaning', 'body'] });
    expect(asked.highlight.max_analyzed_offset).toBe(500_000);
    expect(asked.highlight.fields).toEqual({ meaning: expect.objectContaining({ number_of_fragments: 1 }) });
  });

  it.each([
    [429, 'too much to do: no room. Wait some seconds'],
    [503, 'starting or stopping: no room. Ask again'],
    [500, 'no room'],
  ])('tell what to do after a refusal with %i', async (status, said) => {
    const { isError, content } = await call(
      () => {
        throw new SparrowError('no room', status, 'some_exception');
      },
      'describe_index',
      { index: 'notes' },
    );
    expect(isError).toBe(true);
    expect(content[0].text).toContain(said);
  });
});

describe('what is shown of a hit', () => {
  it('is short, whatever the document is', () => {
    const values = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`field${String(n)}`, 'x'.repeat(200)]));
    const { fields, cut } = briefly(values);
    expect(JSON.stringify(fields).length).toBeLessThan(2500);
    expect(Object.keys(fields).length + cut.length).toBe(100);
    expect(briefly({ a: null, b: [1, 'two', { c: true }], d: 1.5 })).toEqual({
      fields: { a: null, b: [1, 'two', { c: true }], d: 1.5 },
      cut: [],
    });
  });

  it('ends and begins between characters', () => {
    const text = 'a😀b😀c';
    expect([slice(text, 0, 2), slice(text, 2, 3), slice(text, 5, 9)]).toEqual(['a', '😀b', '😀c']);
    let read = '';
    for (let at = 0; at < text.length; at += 2) read += slice(text, at, 2);
    expect(read).toBe(text);
  });
});
