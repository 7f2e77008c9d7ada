// Every example of the pages that begin with a task is run, in the order of the page, against a server of its own.
import { spawnSync } from 'node:child_process';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { translated } from '../../packages/site/languages.mjs';
import { type Example, LANGUAGES, type Language, World, difference, examplesOf } from './example-runner.js';
import { fences, pagesUnder, read } from './pages.js';

const PAGES = ['docs/start.md', 'docs/tutorial.md', 'docs/faq.md', ...pagesUnder('docs/guides')];
/** Pages that only talk about the command line. */
const IN_THE_SHELL = ['docs/tutorial.md', 'docs/guides/running-a-server.md', 'docs/guides/securing-a-server.md'];

const hasPython = spawnSync('python3', ['--version']).status === 0;
if (!hasPython) console.warn('skipped: the examples in Python: there is no python3');

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

  for (const language of used) {
    const mine = all.filter(
      (example) => example.language === language || !example.isOneOfSeveral || example.isNeededEverywhere,
    );
    describe.skipIf(language === 'python' && !hasPython)(`in ${language}`, () => {
      runs(mine, page, language);
    });
  }
});

function runs(mine: readonly Example[], page: string, language: Language): void {
  let world: World;
  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(async () => {
    await world.stop();
  });

  for (const example of mine) {
    const name = `${page}:${String(example.line)} (${language})`;
    if (example.notRun !== undefined) {
      it.skip(`${name}: ${example.notRun}`);
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

it('a request in the shell becomes one in JavaScript and Python, or nothing', () => {
  const body = `{ "a": [1, true, null], "b": "it's" }`.replace("'", '');
  expect(translated(`es -X PUT 'localhost:9200/x/_doc/1?refresh=true' -d '${body}'\n`)).toEqual({
    js: `console.log(JSON.stringify(await client.transport.request({
  method: 'PUT',
  path: '/x/_doc/1?refresh=true',
  body: { a: [1, true, null], b: 'its' },
})));\n`,
    python: `print(json.dumps(es('PUT', '/x/_doc/1?refresh=true', {'a': [1, True, None], 'b': 'its'})))\n`,
  });
  expect(translated('# why\nes localhost:9200 # what\n')?.python).toBe("print(json.dumps(es('GET', '/')))\n");
  for (const other of [
    'sparrow status',
    'es localhost:9200/$INDEX',
    'es localhost:9200 | head',
    'es -H x localhost:9200',
    "es localhost:9200 -d '{'",
  ]) {
    expect(translated(`${other}\n`), other).toBeUndefined();
  }
});

it('an answer that is not as shown is told', () => {
  const shown = (language: string, text: string) => ({ language, mark: 'answer', text, line: 1, joined: true });
  expect(difference('a 12 c\n', shown('text', 'a … c'))).toBeUndefined();
  expect(difference('a 12 d\n', shown('text', 'a … c'))).toContain('a 12 d');
  expect(difference('{"a":1.001,"b":[1,2]}', shown('json', '{"a":1,"b":[1,"…"]}'))).toBeUndefined();
  expect(difference('{"a":1.1,"b":[1,2]}', shown('json', '{"a":1}'))).toContain('$.a');
  expect(difference('{"b":[1,2]}', shown('json', '{"b":[1]}'))).toContain('$.b');
  expect(difference('{}', shown('json', '{"c":null}'))).toContain('$.c');
});
