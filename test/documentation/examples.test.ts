// Every example of the pages that have some is run, in the order of the page, against a server of its own; where a cluster can be started,
// against one over it too.
import { spawnSync } from 'node:child_process';

import { Client, type TransportRequestParams } from '@elastic/elasticsearch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { requestsOf, translated } from '../../packages/site/languages.mjs';
import { ENGINES, type Engine, IS_ELASTICSEARCH } from '../support/engines.js';
import { isFirstTier } from '../tiers.mjs';
import { type Example, LANGUAGES, type Language, World, difference, examplesOf } from './example-runner.js';
import { fences, pagesUnder, read } from './pages.js';

const REFERENCE = [
  ...['api-keys', 'explain-and-highlight', 'hybrid-search', 'inference', 'ingest', 'operating', 'queries', 'reindex'],
  ...['semantic-text', 'snapshots', 'upgrading'],
];
const PAGES = [
  ...['docs/start.md', 'docs/tutorial.md', 'docs/faq.md'],
  ...pagesUnder('docs/guides'),
  ...REFERENCE.map((name) => `docs/${name}.md`),
];
/** Pages whose examples are run: each is a server for each language. */
const RUN = isFirstTier ? ['docs/start.md'] : PAGES;
/** Pages that only talk about the command line. */
const IN_THE_SHELL = ['docs/tutorial.md', 'docs/guides/running-a-server.md', 'docs/guides/securing-a-server.md'];

/** What the Elasticsearch of the peers cannot do, which has only some of its modules. */
const NOT_OVER_ELASTICSEARCH: readonly (readonly [asks: RegExp, why: string])[] = [
  [/\badvice(?:-2)?\b|two-vectors|\/facts\b|\bfilms-2\b/, 'its index needs the module with the analyzers of languages'],
  [/_update_by_query\?(?!pipeline)|_delete_by_query/, 'changes by query need a module'],
];

/** What examples ask for that docs/cluster.md refuses or lists as different. Over a cluster, they are not run. */
const NOT_OVER_CLUSTER: readonly (readonly [asks: RegExp, why: string])[] = [
  [/\/shops\b|shops\.csv|\/labelled-events/, 'OpenSearch has no type flattened'],
  [/_cat\/indices\/sample/, 'passages count as documents'],
  [/_ext\/migration\/assistance/, 'the format of an index is the cluster’s own'],
  [/"profile": true|"explain": true/, 'explanations and profiles are the cluster’s'],
  [
    /"how to avoid pain after running" \} \},\s+"highlight"/,
    'only passages of semantic_text are highlighted by meaning',
  ],
  [/"exists": \{ "field": "tokens" \}/, 'rank_features fields of OpenSearch know no exists'],
  [/api_key\?name=shop/, 'keys of the pages before stay in the list'],
  [/sparrow check|elsewhere/, 'the repository is the cluster’s, and a second server is over the same cluster'],
];

const hasPython = spawnSync('python3', ['--version']).status === 0;
if (!hasPython) console.warn('skipped: the examples in Python: there is no python3');

/** What README sends to a server. */
const README = examplesOf(fences(read('README.md'))).filter(
  ({ language, text }) => language === 'sh' && /\bes /.test(text),
);

const examples = new Map(PAGES.map((page) => [page, examplesOf(fences(read(page)))]));

describe.each(PAGES)('%s', (page) => {
  const all = examples.get(page) ?? [];
  const used = LANGUAGES.filter((language) => all.some((example) => example.language === language));

  it.each(['```', '```bash', '```shell', '```javascript', '```py'])(
    'has no block of %s, which no test would run',
    (fence) => {
      const language = fence.slice(3);
      expect(fences(read(page)).filter((block) => block.language === language)).toEqual([]);
    },
  );

  for (const language of RUN.includes(page) ? used : []) {
    const mine = all.filter(
      (example) => example.language === language || !example.isOneOfSeveral || example.isNeededEverywhere,
    );
    describe.skipIf(language === 'python' && !hasPython).each(ENGINES)(`in ${language}, $name`, (engine) => {
      // Examples in other languages ask for the same as those for the shell.
      const differing = new Map(
        all.flatMap(({ line, text, language: of }) => {
          const [, why] =
            NOT_OVER_CLUSTER.find(([asks]) => of === 'sh' && asks.test(text)) ??
            // Names of indices are written alike in all languages.
            (IS_ELASTICSEARCH ? NOT_OVER_ELASTICSEARCH.find(([asks]) => asks.test(text)) : undefined) ??
            [];
          return why === undefined ? [] : [[line, why] as const];
        }),
      );
      runs(mine, page, language, engine, engine.name === 'cluster' ? differing : new Map());
    });
  }
});

function runs(
  mine: readonly Example[],
  page: string,
  language: Language,
  engine: Engine,
  differing: ReadonlyMap<number, string>,
): void {
  let world: World;
  beforeAll(async () => {
    world = await World.start(read(page), engine);
    // Who follows a guide has mostly done what README says on the same server. Other languages send the same requests.
    if (page.startsWith('docs/guides/') && language === 'sh') {
      for (const example of README) expect(compact(await world.run(example))).not.toMatch(/"error"\s*:/);
    }
  });
  afterAll(async () => {
    await world.stop();
  });

  for (const example of mine) {
    const name = `${page}:${String(example.line)} (${language})`;
    const notRun = example.notRun ?? differing.get(example.line);
    if (notRun !== undefined) {
      it.skip(`${name}: ${notRun}`);
      continue;
    }
    it.skipIf(example.language === 'python' && !hasPython)(name, async () => {
      const printed = compact(await world.run(example));
      if (example.answer !== undefined) expect(difference(printed, example.answer)).toBeUndefined();
      else expect(printed).not.toMatch(/"error"\s*:|"errors"\s*:\s*true/);
    });
  }
}

/** Python puts spaces into JSON. */
function compact(printed: string): string {
  return printed.replaceAll(/^\{".*\}$/gm, (line) => JSON.stringify(JSON.parse(line)));
}

it.each(PAGES.filter((page) => !IN_THE_SHELL.includes(page)))('%s has its requests in every language', (page) => {
  const all = examples.get(page) ?? [];
  // What the shell alone has are commands, files, and checks of a running server.
  const alone = all.filter(
    ({ language, isOneOfSeveral, text }) => language === 'sh' && !isOneOfSeveral && /^es /m.test(text),
  );
  expect(alone.map(({ line }) => line)).toEqual([]);
  const count = (language: Language) => all.filter((it) => it.isOneOfSeveral && it.language === language).length;
  expect(count('sh')).toBeGreaterThan(0);
  expect(LANGUAGES.map(count)).toEqual(LANGUAGES.map(() => count('sh')));
});

/** What a text in JavaScript sends through the official client, which asks nobody. */
async function sentBy(text: string): Promise<object[]> {
  const client = new Client({ node: 'http://localhost:9200' });
  const sent: object[] = [];
  const note = ({ method, path, querystring, body }: TransportRequestParams): Promise<object> => {
    sent.push({ method, ...placeOf(path, querystring as object | undefined), body: body ?? undefined });
    return Promise.resolve({});
  };
  client.transport.request = note as typeof client.transport.request;
  const program = new Function('client', 'console', `return (async () => { ${text} })()`) as (
    client: Client,
    console: { log: () => void },
  ) => Promise<void>;
  await program(client, { log: () => undefined });
  return sent;
}

/** A path and its parameters, however they are written. */
function placeOf(path: string, more: object = {}): object {
  const [place = '', query] = path.split('?');
  const parameters = [...new URLSearchParams(query), ...Object.entries(more)].map(([name, value]) => {
    const text = String(value);
    return [name, text === '' ? 'true' : text];
  });
  return { path: decodeURIComponent(place), query: Object.fromEntries(parameters) as object };
}

it('a request in the shell becomes one in JavaScript and Python, or nothing', () => {
  const body = `{ "a": [1, true, null], "b": "its" }`;
  expect(translated(`es -X PUT 'localhost:9200/x/_doc/1?refresh=true' -d '${body}'\n`)).toEqual({
    js: `console.log(JSON.stringify(await client.index({
  index: 'x',
  id: '1',
  refresh: true,
  document: { a: [1, true, null], b: 'its' },
})));\n`,
    python: `print(json.dumps(es('PUT', '/x/_doc/1?refresh=true', {'a': [1, True, None], 'b': 'its'})))\n`,
  });
  expect(translated('# why\nes localhost:9200 # what\n')).toEqual({
    js: 'console.log(JSON.stringify(await client.info()));\n',
    python: "print(json.dumps(es('GET', '/')))\n",
  });
  const other = translated('KEY=$(cat elsewhere/owner.key)\nes localhost:9201/_tasks\n');
  expect(other?.js).toMatch(/node: 'http:\/\/localhost:9201'[^]*elsewhere\/owner\.key[^]*client\.tasks\.list\(\)/);
  expect(other?.python).toMatch(/elsewhere\/owner\.key[^]*'http:\/\/localhost:9201'[^]*es\('GET', '\/_tasks'\)/);
  for (const text of [
    'sparrow status',
    'es localhost:9200/$INDEX',
    'es localhost:9200 | head',
    'es -H x localhost:9200',
    "es localhost:9200 -d '{'",
    'es localhost:9201',
    'es localhost:9200\nes localhost:9201',
  ]) {
    expect(translated(`${text}\n`), text).toBeUndefined();
  }
});

it('a method of the client sends what curl sends; only what Elasticsearch does not have goes as a path', async () => {
  const blocks = pagesUnder('docs').flatMap((page) => fences(read(page)).filter(({ language }) => language === 'sh'));
  let count = 0;
  for (const { text } of blocks) {
    const js = translated(`${text}\n`)?.js.replace(/^import [^]*?\n\}\);\n/, '');
    const requests = requestsOf(`${text}\n`.replace(/^KEY=[^\n]*\n(?:es\(\) [^\n]*\n)?/, ''));
    if (js === undefined || requests === undefined) continue;
    expect(await sentBy(js), text).toEqual(
      requests.map(({ method, path, body }) => ({ method, ...placeOf(path), body })),
    );
    const plain = requests.filter(({ path }) => !/\/_ext\//.test(path));
    if (plain.length === requests.length) expect(js).not.toContain('transport.request');
    count += requests.length;
  }
  expect(count).toBeGreaterThan(60);
});

/** What no page has as an example so far. */
it.each([
  'localhost:9200/_ml/trained_models/.sparse_encoder_model_2/_stats',
  'localhost:9200/tips/_explain/1?q=title:bread',
  `localhost:9200/tips/_explain/1 -d '{ "query": { "match": { "text": "yeast" } } }'`,
  '-X POST localhost:9200/tips/_pit?keep_alive=1m',
  `localhost:9200/_search -d '{ "pit": { "id": "abc", "keep_alive": "1m" } }'`,
  `-X DELETE localhost:9200/_pit -d '{ "id": "abc" }'`,
  `localhost:9200/_mtermvectors -d '{ "docs": [{ "_index": "tips", "_id": "1" }] }'`,
  `localhost:9200/tips/_mtermvectors -d '{ "ids": ["1", "2"] }'`,
  'localhost:9200/tips/_termvectors/1',
  `localhost:9200/tips/_termvectors/1 -d '{ "fields": ["text"] }'`,
  `localhost:9200/tips/_termvectors -d '{ "doc": { "text": "yeast" } }'`,
])('the client has a method for %s', async (words) => {
  const text = `es ${words.replace(/localhost\S+/, "'$&'")}\n`;
  const [request] = requestsOf(text) ?? [];
  const js = translated(text)?.js ?? '';
  expect(js).not.toContain('transport.request');
  expect(await sentBy(js)).toEqual([{ method: request?.method, ...placeOf(request?.path ?? ''), body: request?.body }]);
});

it('an answer that is not as shown is told', () => {
  const shown = (language: string, text: string) => ({ language, mark: 'answer', text, line: 1, joined: true });
  expect(difference('a 12 c\n', shown('text', 'a … c'))).toBeUndefined();
  expect(difference('a 12 d\n', shown('text', 'a … c'))).toContain('a 12 d');
  expect(difference('2 found, 1.5 s\n', shown('text', '2 found, … ms'))).toBeUndefined();
  expect(difference('{"a":1.001,"b":[1,2]}', shown('json', '{"a":1,"b":[1,"…"]}'))).toBeUndefined();
  expect(difference('{"a":1.1,"b":[1,2]}', shown('json', '{"a":1}'))).toContain('$.a');
  expect(difference('{"b":[1,2]}', shown('json', '{"b":[1]}'))).toContain('$.b');
  expect(difference('{}', shown('json', '{"c":null}'))).toContain('$.c');
});
