// `sparrow eval` over an index that is there, and its search for better weights.
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Ended, sparrow } from './support.js';

const DICTIONARY = new URL('../../packages/cli/dist/demo/dictionary.json.gz', import.meta.url);
const QUERIES = 45;

let server: RunningServer;
let folder: string;
/** Words as queries, their definitions as documents. */
let collection: string;
/** The id of a document that is in the indices. */
let known: string;

const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-eval-'));
  collection = join(folder, 'collection');
  await mkdir(collection);
  const { meanings } = JSON.parse(gunzipSync(await readFile(DICTIONARY)).toString()) as {
    meanings: { _id: string; words: string[]; gloss: string }[];
  };
  const some = meanings.slice(100, 300);
  const asked = some.slice(0, QUERIES);
  known = some[0]?._id ?? '';
  await writeFile(join(collection, 'corpus.jsonl'), lines(some.map(({ _id, gloss }) => ({ _id, text: gloss }))));
  await writeFile(
    join(collection, 'queries.jsonl'),
    lines(asked.map(({ words }, at) => ({ _id: `q${String(at)}`, text: words.join(' ') }))),
  );
  const judgements = asked.map(({ _id }, at) => `q${String(at)}\t${_id}\t1\n`).join('');
  await writeFile(join(collection, 'qrels.test.tsv'), `query-id\tcorpus-id\tscore\n${judgements}`);

  server = await startServer();
  const semantic = { type: 'semantic_text', inference_id: '.hybrid' };
  await server.request('PUT', '/glosses', {
    mappings: { properties: { gloss: { type: 'text', analyzer: 'english', fields: { semantic } } } },
  });
  const bulk = lines(some.flatMap(({ _id, gloss }) => [{ index: { _id } }, { gloss }]));
  expect((await server.request('POST', '/glosses/_bulk?refresh=true', bulk)).body.errors).toBe(false);
  // Words find the right meaning, and vectors the one whose definition it has instead.
  await server.request('PUT', '/mixed-up', {
    mappings: { properties: { words: { type: 'text' }, gloss: semantic } },
  });
  const mixedUp = lines(
    some.flatMap(({ _id, words }, at) => [{ index: { _id } }, { words, gloss: some[(at + 1) % some.length]?.gloss }]),
  );
  expect((await server.request('POST', '/mixed-up/_bulk?refresh=true', mixedUp)).body.errors).toBe(false);
  await server.request('PUT', '/plain/_doc/1?refresh=true', { gloss: 'a word' });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<Ended> {
  return sparrow(['eval', ...args, '--url', server.url, '--data', server.data]);
}

it('takes away what it has made, and says how where it is kept', async () => {
  const dense = async (): Promise<boolean> => {
    const { body } = await server.request('GET', '/_ml/trained_models/.all-minilm-l6-v2/_stats');
    return body.trained_model_stats.some(
      ({ deployment_stats: one }: any) => one?.deployment_id === '.all-minilm-l6-v2' && one.state === 'started',
    );
  };
  const loaded = 'loading COLLECTION into [sparrow-eval]\nsearching (qrels.test.tsv)\n';
  const evaluate = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await run(collection, '--queries', '2', ...args);
    expect(code, stderr).toBe(0);
    return stderr.replace(collection, 'COLLECTION');
  };
  const there = async (): Promise<readonly number[]> => [
    (await server.request('HEAD', '/sparrow-eval')).status,
    (await server.request('GET', '/_ingest/pipeline/sparrow-eval')).status,
  ];
  expect([await dense(), await evaluate(), await dense(), await there()]).toEqual([false, loaded, false, [404, 404]]);
  const requests = '`DELETE /sparrow-eval` and `DELETE /_ingest/pipeline/sparrow-eval`';
  const kept = `kept: the index [sparrow-eval]; to delete what was made for it, send ${requests}, and \`sparrow models stop .all-minilm-l6-v2\` stops the model that was started\n`;
  expect([await evaluate('--keep'), await dense(), await there()]).toEqual([loaded + kept, true, [200, 200]]);
  // What was kept stays, with its pipeline, and so does a model that was at work before.
  const beside = `kept by earlier runs, and left alone: sparrow-eval\n${loaded.replace('eval]', 'eval-2]')}`;
  expect([await evaluate(), await dense(), await there()]).toEqual([beside, true, [200, 200]]);
  expect((await server.request('HEAD', '/sparrow-eval-2')).status).toBe(404);
  await server.request('DELETE', '/sparrow-eval');
  await server.request('DELETE', '/_ingest/pipeline/sparrow-eval');
  await server.request('POST', '/_ml/trained_models/.all-minilm-l6-v2/deployment/_stop');
});

it('measures both fusions of an index that it loads', async () => {
  const { stdout } = await run(collection, '--queries', '2', '--json');
  const searches = JSON.parse(stdout).table.map(({ search }: any) => search);
  expect(searches).toEqual(['words', 'sparse', 'dense', 'words and sparse', 'rrf', 'linear']);
});

it('leaves an index alone that it has not made', async () => {
  await server.request('PUT', '/sparrow-eval/_doc/1?refresh=true', { body: 'somebody else wrote this' });
  const { code, stderr } = await run(collection, '--queries', '2');
  expect([code, stderr]).toEqual([
    1,
    'sparrow: there is an index or alias [sparrow-eval] that sparrow eval did not create and would have to delete: rename it, or measure it with --index sparrow-eval\n',
  ]);
  expect((await server.request('GET', '/sparrow-eval/_count')).body.count).toBe(1);
  await server.request('DELETE', '/sparrow-eval');
});

it('measures the lists of an index and their fusions', async () => {
  const { code, stdout, stderr } = await run(collection, '--index', 'glosses');
  expect([code, stderr]).toEqual([0, 'searching (qrels.test.tsv)\n']);
  const [count, heading, ...rows] = stdout.trimEnd().split('\n');
  expect([count, heading]).toEqual([
    `${String(QUERIES)} queries`,
    expect.stringMatching(/^search +nDCG@10 +recall@100/),
  ]);
  expect(rows.map((row) => row.split(' ')[0])).toEqual(['words', 'sparse', 'dense', 'rrf', 'linear']);
});

describe('--tune', () => {
  it('gives the figures, the protocol and the request as JSON', async () => {
    const { code, stdout, stderr } = await run(collection, '--index', 'glosses', '--tune', '--json');
    expect([code, stderr]).toEqual([0, '']);
    const { queries, table, tuning } = JSON.parse(stdout);
    expect([queries, tuning.queries]).toEqual([QUERIES, QUERIES]);
    const quality = (search: string): number => table.find((row: any) => row.search === search)['nDCG@10'];
    expect(tuning.parity).toEqual(
      ['rrf', 'linear'].map((fusion) => ({ fusion, server: quality(fusion), here: quality(fusion) })),
    );
    expect(tuning.protocol).toEqual({ folds: 5, repeats: 10, resamples: 2000, seed: 42, fewest_queries: 30 });
    expect(tuning.defaults).toMatchObject({ fusion: 'rrf', constant: 5, 'nDCG@10': quality('rrf') });
    const { difference, interval, 'nDCG@10': held } = tuning.held_out;
    expect(held).toBeCloseTo(quality('rrf') + difference, 3);
    expect(interval[0]).toBeLessThanOrEqual(difference);
    expect(interval[1]).toBeGreaterThanOrEqual(difference);
    expect(tuning.best.nDCG_on_all_queries).toBeGreaterThanOrEqual(held);
    expect(tuning.best.trainings).toBe(50);
    const body = JSON.parse(JSON.stringify(tuning.body).replaceAll('QUESTION', 'a large animal'));
    expect((await server.request('POST', '/glosses/_search', body)).status).toBe(200);
  });

  it('asks the server again with the weights that it recommends', async () => {
    const { code, stdout } = await run(collection, '--index', 'mixed-up', '--tune', '--json');
    expect(code).toBe(0);
    const { tuning } = JSON.parse(stdout);
    expect(tuning).toMatchObject({ recommended: 'tuned', body_measured: tuning.best.nDCG_on_all_queries });
    expect(tuning.body_measured).toBeGreaterThan(tuning.defaults['nDCG@10'] + 0.05);
    expect(tuning.body.retriever).not.toHaveProperty('rrf.query');
  });

  it('says in a few lines what to do', async () => {
    const { code, stdout } = await run(collection, '--index', 'glosses', '--tune', '--fusion', 'rrf');
    expect(code).toBe(0);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(
      /\n\d+ settings, chosen by 5-fold cross-validation, 10 times\nfusion +nDCG@10 +difference +95% interval\n/,
    );
    expect(stdout).toMatch(/\nrrf, the server's defaults +0\.\d{4}\n/);
    expect(stdout).toMatch(/\ntuned, on queries held out +0\.\d{4} +[+−]0\.\d{4} +[+−]0\.\d{4} to [+−]0\.\d{4}\n/);
    expect(stdout).not.toContain('linear with zscore');
    expect(stdout).toMatch(/\nbest of all: rrf with rank_constant \d+, words .* \(chosen in \d+ of 50 trainings\)\n/);
    expect(stdout).toMatch(/\n(?:The gain|Keep the defaults).*\n\{"retriever":.*QUESTION.*\}\n$/);
  });

  it.each([
    ['mixed-up', '7', String.raw`; with about [\d,]+, a gain of 0\.\d{4} would probably show \(4 of 5\)`],
    // Here the defaults are the best setting.
    ['glosses', '3', ''],
  ])('keeps the defaults where there are too few judged queries, in [%s]', async (index, queries, more) => {
    const { stdout } = await run(collection, '--index', index, '--tune', '--queries', queries);
    const sentence = String.raw`Keep the defaults: too few judged queries \(${queries}\)\. At least 30 are needed${more}\.`;
    expect(stdout).toMatch(new RegExp(String.raw`\n${sentence}\n\{"retriever":\{"rrf":\{"query":"QUESTION"\}\}\}\n$`));
  });

  it('loads the corpus of the folder where no index is named, and removes it again', async () => {
    const file = join(folder, 'report.json');
    const { code, stdout } = await run(collection, '--tune', '--queries', '30', '--json', file);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^200 documents in .*, 30 queries\n/);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      index: 'sparrow-eval',
      documents: 200,
      queries: 30,
    });
    expect((await server.request('GET', '/sparrow-eval')).status).toBe(404);
  });
});

it('says if most judged documents are missing, and if several indices hold the same one', async () => {
  const partial = join(folder, 'partial');
  await mkdir(partial);
  await writeFile(join(partial, 'queries.jsonl'), lines([{ _id: '1', text: 'animal' }]));
  await writeFile(join(partial, 'qrels.test.tsv'), `1\t${known}\t1\n1\tunknown\t1\n1\tother\t1\n`);
  const searching = 'searching (qrels.test.tsv)\n';
  const missing = (index: string): string =>
    `warning: [${index}] holds only 1 of the 3 documents that qrels.test.tsv judges relevant; what is missing counts as not found\n`;
  expect((await run(partial, '--index', 'glosses')).stderr).toBe(missing('glosses') + searching);
  await server.request('PUT', '/again', { mappings: { properties: { gloss: { type: 'text' } } } });
  await server.request('PUT', `/again/_doc/${known}?refresh=true`, { gloss: 'the same id' });
  const twice =
    'several indices of [glosses,again] hold the same judged id (1 of 1): an id counts once in each list, at its first rank\n';
  const { stderr } = await run(partial, '--index', 'glosses,again');
  await server.request('DELETE', '/again');
  expect(stderr.startsWith(missing('glosses,again') + twice), stderr).toBe(true);
});

describe('says what to do', () => {
  it.each([
    [
      ['--index', 'nowhere'],
      'no such index [nowhere]; the indices are glosses, mixed-up, plain; make it with `sparrow import FILE',
    ],
    [['--index', 'plain', '--tune'], '[plain] has no semantic_text field with documents: there is nothing to fuse;'],
  ])('with %j', async (args, sentence) => {
    const { code, stdout, stderr } = await run(collection, ...args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^sparrow: .*\n$/m);
    expect(stderr).toContain(sentence);
  });

  it('where the judgements are about other documents', async () => {
    const other = join(folder, 'other');
    await mkdir(other);
    await writeFile(join(other, 'queries.jsonl'), lines([{ _id: '1', text: 'animal' }]));
    await writeFile(join(other, 'qrels.dev.tsv'), 'query-id\tcorpus-id\tscore\n1\tunknown\t1\n');
    await writeFile(join(other, 'corpus.jsonl'), lines([{ _id: 'a', text: 'animal' }]));
    for (const options of [['--index', 'glosses'], ['--index', 'glosses', '--tune'], ['--no-dense']]) {
      const { code, stdout, stderr } = await run(other, ...options);
      expect([code, stdout, stderr]).toEqual([
        1,
        '',
        expect.stringContaining('] holds no document that qrels.dev.tsv judges: the ids in qrels.dev.tsv have to be'),
      ]);
    }
  });

  it('where a line of the queries is none', async () => {
    const broken = join(folder, 'broken');
    await mkdir(broken);
    await writeFile(join(broken, 'qrels.test.tsv'), `query-id\tcorpus-id\tscore\n0\t${known}\t1\n1\t${known}\t1\n`);
    for (const line of ['{"_id": "1", "text"', 'null', '{"_id": 1, "text": "animal"}', '{"_id": "1"}']) {
      await writeFile(join(broken, 'queries.jsonl'), `${lines([{ _id: '0', text: 'animal' }])}${line}\n`);
      const { code, stderr } = await run(broken, '--index', 'glosses');
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('line 2 of queries.jsonl is not a JSON object in which'),
      ]);
      // Lines after the queries that are wanted are not read.
      expect((await run(broken, '--index', 'glosses', '--queries', '1')).code).toBe(0);
    }
  });

  it('where a line or the judgements are longer than anybody writes', async () => {
    const long = join(folder, 'long');
    await mkdir(long);
    await writeFile(join(long, 'qrels.test.tsv'), `query-id\tcorpus-id\tscore\n0\t${known}\t1\n`);
    await writeFile(join(long, 'queries.jsonl'), `{"_id":"0","text":"animal"}\n{"_id":"1`);
    await truncate(join(long, 'queries.jsonl'), 600 * 1024 * 1024);
    const { code, stderr } = await run(long, '--index', 'glosses');
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 2 of queries.jsonl is longer than 100 MB')]);
    await truncate(join(long, 'qrels.test.tsv'), 600 * 1024 * 1024);
    const judged = await run(long, '--index', 'glosses');
    expect([judged.code, judged.stderr]).toEqual([1, expect.stringContaining('qrels.test.tsv is larger than 256 MB')]);
  });

  it('where a query comes twice', async () => {
    const twice = join(folder, 'twice');
    await mkdir(twice);
    await writeFile(join(twice, 'qrels.test.tsv'), `query-id\tcorpus-id\tscore\n1\t${known}\t1\n`);
    const [other, animal] = [
      { _id: '2', text: 'plant' },
      { _id: '1', text: 'animal' },
    ];
    await writeFile(join(twice, 'queries.jsonl'), lines([animal, other, animal]));
    const { code, stderr } = await run(twice, '--index', 'glosses');
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 3 of queries.jsonl repeats the _id 1')]);
  });

  it.each([[['--tune']], [[]]])('with %j, where loading fails, and removes the index', async (options) => {
    const half = join(folder, `half${options.join('')}`);
    await mkdir(half);
    await writeFile(join(half, 'qrels.test.tsv'), 'query-id\tcorpus-id\tscore\n1\ta\t1\n');
    await writeFile(join(half, 'queries.jsonl'), lines([{ _id: '1', text: 'animal' }]));
    await writeFile(join(half, 'corpus.jsonl'), `${lines([{ _id: 'a', text: 'animal' }])}none\n`);
    const { code, stderr } = await run(half, ...options);
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 2 of corpus.jsonl is not a JSON object')]);
    expect((await server.request('GET', '/sparrow-eval')).status).toBe(404);
  });

  it('about what failed first, if removing the index fails too', async () => {
    const reasons: string[] = [];
    const failing = createServer((request, response) => {
      if (request.method === 'GET') {
        const missing = { type: 'index_not_found_exception', reason: 'no such index [sparrow-eval]' };
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { ...missing, root_cause: [missing] }, status: 404 }));
        return;
      }
      // The index of an earlier run is removed, and no other request does what it should.
      reasons.push(`reason ${String(reasons.length)}`);
      const error = { type: 'illegal_argument_exception', reason: reasons.at(-1) };
      response.writeHead(reasons.length === 1 ? 200 : 400, { 'content-type': 'application/json' });
      response.end(JSON.stringify(reasons.length === 1 ? { acknowledged: true } : { error, status: 400 }));
    }).listen(0, '127.0.0.1');
    await once(failing, 'listening');
    try {
      const url = `http://127.0.0.1:${String((failing.address() as AddressInfo).port)}`;
      const { code, stderr } = await sparrow(['eval', collection, '--tune', '--url', url, '--key', 'YTpi']);
      expect([code, stderr]).toEqual([1, expect.stringContaining('reason 1')]);
      expect(reasons.length).toBeGreaterThan(2);
    } finally {
      failing.close();
    }
  });

  it.each([
    [['--index', 'a', '--no-dense'], '--no-dense applies only to the index that is loaded without --index'],
    [['--index', 'a', '--keep'], '--keep applies only to the index that is loaded without --index'],
    [['--tune', '--no-dense'], '--tune needs the dense vectors that --no-dense leaves out'],
    [['--fusion', 'rrf'], '--fusion needs --tune'],
    [['--tune', '--fusion', 'best'], 'Allowed choices are rrf, linear'],
  ])('about options that make no sense: %j', async (args, sentence) => {
    const { code, stdout, stderr } = await run(collection, ...args);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(sentence)]);
  });

  it('in one line, whatever the server says', async () => {
    const error = { type: 'index_not_found_exception', reason: 'no such index [x\n\u202e\u001b[2J]' };
    const strange = createServer((request, response) => {
      const isList = request.url?.startsWith('/_cat') === true;
      response.writeHead(isList ? 200 : 404, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(isList ? [{ index: 'a\nb' }] : { error: { ...error, root_cause: [error] }, status: 404 }),
      );
    }).listen(0, '127.0.0.1');
    await once(strange, 'listening');
    try {
      const url = `http://127.0.0.1:${String((strange.address() as AddressInfo).port)}`;
      const { code, stderr } = await sparrow(['eval', collection, '--index', 'x', '--url', url, '--key', 'YTpi']);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^sparrow: no such index \[x␊\ufffd.*\]; there is only \[a␊b\]; make it with .*\n$/);
    } finally {
      strange.close();
    }
  });
});
