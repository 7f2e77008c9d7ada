// The official JavaScript client's search interface and helpers, as its documentation uses them, for each version of the client.
import type { Client, errors } from '@elastic/elasticsearch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

/** What the package exports. Another version has other types, and the same calls. */
export interface Package {
  readonly Client: typeof Client;
  readonly errors: typeof errors;
}

const COUNT = 300;

interface Book {
  readonly title: string;
  readonly genre: string;
  readonly pages: number;
}

export function officialClient(official: Package, major: number): void {
  let server: RunningServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    client = new official.Client({ node: server.url, auth: { apiKey: server.apiKey } });
    await client.indices.create({
      index: 'books',
      mappings: {
        properties: { title: { type: 'text' }, genre: { type: 'keyword' }, pages: { type: 'integer' } },
      },
    });
    const books = Array.from({ length: COUNT }, (_, n) => ({
      title: `Volume ${String(n)} about ${n % 3 === 0 ? 'bread' : 'whales'}`,
      genre: ['novel', 'essay', 'poem', 'letter'][n % 4] ?? '',
      pages: n,
    }));
    const result = await client.helpers.bulk<Book>({
      datasource: books,
      flushBytes: 4_000,
      refreshOnCompletion: 'books',
      onDocument: (book) => ({ index: { _index: 'books', _id: String(book.pages) } }),
    });
    expect(result).toMatchObject({ total: COUNT, successful: COUNT, failed: 0 });
  });

  afterAll(async () => {
    await client.close();
    await server.stop();
  });

  describe('helpers', () => {
    it('bulk sends again what a full queue refused, and drops what cannot be written', async () => {
      const narrow = 'js-narrow';
      await client.ml.startTrainedModelDeployment({
        model_id: '.elser_model_2',
        deployment_id: narrow,
        queue_capacity: 1,
        wait_for: 'started',
      });
      await client.ingest.putPipeline({
        id: narrow,
        processors: [{ inference: { model_id: narrow, input_output: { input_field: 'text', output_field: 'v' } } }],
      });
      await client.indices.create({
        index: narrow,
        mappings: { properties: { n: { type: 'integer' }, v: { type: 'sparse_vector' } } },
      });
      const datasource = Array.from({ length: 12 }, (_, n) => ({
        n: n === 7 ? 'seven' : n,
        text: `text ${String(n)}`,
      }));
      const dropped: unknown[] = [];
      const result = await client.helpers.bulk({
        datasource,
        pipeline: narrow,
        retries: 60,
        wait: 1,
        refreshOnCompletion: narrow,
        onDocument: (document) => ({ index: { _index: narrow, _id: String(document.n) } }),
        onDrop: ({ document, status }) => dropped.push([document.n, status]),
      });
      expect(result).toMatchObject({ total: 12, successful: 11, failed: 1 });
      expect(result.retry).toBeGreaterThan(0);
      expect(dropped).toEqual([['seven', 400]]);
      expect((await client.count({ index: narrow, query: { exists: { field: 'v' } } })).count).toBe(11);
      await client.ingest.deletePipeline({ id: narrow });
      await client.ml.stopTrainedModelDeployment({ model_id: narrow });
    });

    it('scrollDocuments gives each document once', async () => {
      const seen = new Set<number>();
      for await (const book of client.helpers.scrollDocuments<Book>({
        index: 'books',
        size: 70,
        query: { match_all: {} },
      })) {
        seen.add(book.pages);
      }
      expect(seen.size).toBe(COUNT);
    });

    it('scrollSearch clears its scroll when it is left early', async () => {
      for await (const page of client.helpers.scrollSearch<Book>({
        index: 'books',
        size: 10,
        query: { match_all: {} },
      })) {
        expect(page.documents).toHaveLength(10);
        await page.clear();
      }
    });

    it('msearch joins searches of several callers', async () => {
      const searcher = client.helpers.msearch({ operations: 5, flushInterval: 20 });
      const found = await Promise.all(
        ['novel', 'poem', 'none'].map((genre) =>
          searcher.search<Book>({ index: 'books' }, { query: { term: { genre } } }),
        ),
      );
      await expect(searcher.search({ index: 'books' }, { query: { nonsense: {} } } as never)).rejects.toThrow();
      searcher.stop();
      expect(found.map(({ body }) => (body.hits.total as { value: number }).value)).toEqual([75, 75, 0]);
    });

    it('search gives the sources alone', async () => {
      const books = await client.helpers.search<Book>({ index: 'books', query: { term: { pages: 42 } } });
      expect(books.map((book) => book.title)).toEqual(['Volume 42 about bread']);
    });
  });

  describe('search', () => {
    it('sorts, pages, highlights, collapses and aggregates in one request', async () => {
      const answer = await client.search<Book>({
        index: 'books',
        query: { bool: { must: { match: { title: 'whales' } }, filter: { range: { pages: { lt: 100 } } } } },
        sort: [{ genre: 'asc' }, { pages: { order: 'desc' } }],
        collapse: { field: 'genre' },
        highlight: { fields: { title: {} } },
        fields: ['pages'],
        aggregations: { genres: { terms: { field: 'genre' }, aggregations: { longest: { max: { field: 'pages' } } } } },
      });
      const hits = answer.hits.hits;
      expect(hits.map((hit) => hit._source?.genre)).toEqual(['essay', 'letter', 'novel', 'poem']);
      expect(hits.map((hit) => hit.sort)).toEqual([
        ['essay', 97],
        ['letter', 95],
        ['novel', 92],
        ['poem', 98],
      ]);
      expect(hits[0]?.highlight?.['title']?.[0]).toContain('<em>whales</em>');
      // The field that hits are collapsed by is among them, as in Elasticsearch.
      expect(hits[0]?.fields).toEqual({ pages: [97], genre: ['essay'] });
      const { buckets } = answer.aggregations?.['genres'] as unknown as { buckets: unknown[] };
      expect(buckets).toHaveLength(4);
    });

    it('pages through a point in time while others write', async () => {
      const { id } = await client.openPointInTime({ index: 'books', keep_alive: '1m' });
      const seen = new Set<string>();
      let pit = { id, keep_alive: '1m' };
      let after: unknown[] | undefined;
      for (let page = 0; page < 10; page += 1) {
        const answer = await client.search<Book>({
          pit,
          size: 64,
          sort: [{ pages: 'asc' }],
          ...(after === undefined ? {} : { search_after: after as never }),
        });
        if (answer.hits.hits.length === 0) break;
        for (const hit of answer.hits.hits) seen.add(hit._id ?? '');
        after = answer.hits.hits.at(-1)?.sort;
        pit = { id: answer.pit_id ?? id, keep_alive: '1m' };
        await client.index({
          index: 'books',
          id: `late-${String(page)}`,
          document: { pages: 1_000 + page },
          refresh: true,
        });
      }
      expect(seen.size).toBe(COUNT);
      expect(await client.closePointInTime({ id: pit.id })).toMatchObject({ succeeded: true });
      await expect(client.search({ pit })).rejects.toBeInstanceOf(official.errors.ResponseError);
    });

    it('fuses a lexical and a semantic retriever', async () => {
      await client.indices.create({
        index: 'texts',
        mappings: { properties: { text: { type: 'text' }, tokens: { type: 'sparse_vector' } } },
      });
      await client.ingest.putPipeline({
        id: 'encode',
        processors: [
          {
            inference: {
              model_id: '.sparse_encoder_model_2',
              input_output: [{ input_field: 'text', output_field: 'tokens' }],
            } as never,
          },
        ],
      });
      const texts = ['a collector of postage stamps', 'the largest animal of the sea', 'bread is baked from dough'];
      await client.bulk({
        index: 'texts',
        pipeline: 'encode',
        refresh: true,
        operations: texts.flatMap((text, n) => [{ index: { _id: String(n) } }, { text }]),
      });
      const answer = await client.search({
        index: 'texts',
        retriever: {
          rrf: {
            retrievers: [
              { standard: { query: { match: { text: 'whale' } } } },
              {
                standard: {
                  query: {
                    sparse_vector: { field: 'tokens', inference_id: '.sparse_encoder_model_2', query: 'whale' },
                  },
                },
              },
            ],
            rank_window_size: 10,
          },
        },
      });
      expect(answer.hits.hits[0]?._id).toBe('1');
    });
  });

  it('the small interfaces answer in their types', async () => {
    const caps = await client.fieldCaps({ index: 'books', fields: 'p*' });
    expect(caps.fields['pages']?.['integer']).toMatchObject({ searchable: true, aggregatable: true });
    const valid = await client.indices.validateQuery({ index: 'books', query: { match_all: {} } });
    expect(valid.valid).toBe(true);
    const explained = await client.explain({ index: 'books', id: '1', query: { match: { title: 'whales' } } });
    expect(explained.matched).toBe(true);
    const analyzed = await client.indices.analyze({ tokenizer: 'standard', filter: ['lowercase'], text: 'Two Words' });
    expect(analyzed.tokens?.map((token) => token.token)).toEqual(['two', 'words']);
  });

  it('speaks its version of the interface, and the client reads its errors', async () => {
    const { headers, body } = await client.info({}, { meta: true });
    expect(headers['content-type']).toBe(`application/vnd.elasticsearch+json;compatible-with=${String(major)}`);
    expect(body.version.number).toMatch(/^8\.19\./);
    expect(await client.ping()).toBe(true);
    const missing = await client.get({ index: 'nowhere', id: '1' }).catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(official.errors.ResponseError);
    expect(missing).toMatchObject({ statusCode: 404 });
    const elsewhere = await client.esql.query({ query: 'FROM books' }).catch((error: unknown) => error);
    expect(String((elsewhere as Error).message)).toContain('ES|QL is not part of this server');
  });
}
