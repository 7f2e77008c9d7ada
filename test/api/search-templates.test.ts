// Search templates: filled in as Elasticsearch does, searched with the rights of the key, stored so that a crash loses none, and bounded.
import { mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
/** A key that may read `mine`, and one that may change settings. */
let reader: string;
let manager: string;

const call = (method: string, path: string, body?: unknown, apiKey?: string): Promise<Answer> =>
  server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
const done = async (method: string, path: string, body?: unknown, apiKey?: string): Promise<any> => {
  const answer = await call(method, path, body, apiKey);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const render = (source: unknown, params: unknown = {}): Promise<Answer> =>
  call('POST', '/_render/template', { source, params });
/** What a template with one value becomes, as the text of a member. */
const filled = async (template: string, params: object = {}): Promise<unknown> => {
  const answer = await render(`{"a":${template}}`, params);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.template_output.a;
};
async function refused(answering: Promise<Answer>, status: number, reason: string): Promise<void> {
  const answer = await answering;
  expect([answer.status, answer.text], reason).toEqual([status, expect.stringContaining(reason)]);
}
const ids = (answer: any): string[] => answer.hits.hits.map((hit: any) => hit._id as string).toSorted();
const lines = (...all: object[]): string => all.map((line) => `${JSON.stringify(line)}\n`).join('');

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const index of ['mine', 'other']) {
    await done('PUT', `/${index}`, { mappings: { properties: { tag: { type: 'keyword' }, n: { type: 'long' } } } });
    await call('PUT', `/${index}/_doc/1?refresh=true`, { tag: 'red "blue"', n: 1 });
    await call('PUT', `/${index}/_doc/2?refresh=true`, { tag: 'green', n: 9_007_199_254_740_992 });
  }
  const key = async (role: object): Promise<string> =>
    (await done('POST', '/_security/api_key', { name: 'k', role_descriptors: { role } })).encoded;
  reader = await key({ indices: [{ names: ['mine'], privileges: ['read'] }] });
  manager = await key({ cluster: ['manage'] });
});

afterAll(async () => {
  await server.stop();
});

describe('a template', () => {
  it('fills in values, escaped for JSON unless it says otherwise', async () => {
    const value = 'a "b" \\ <i>&\n/';
    expect(await filled('"{{v}}"', { v: value })).toBe(value);
    expect(await filled('{{{v}}}', { v: '[1,2]' })).toEqual([1, 2]);
    expect(await filled('{{&v}}', { v: '{"b":1}' })).toEqual({ b: 1 });
    expect(await filled('"{{nobody}}{{a.b.c}}{{none}}"', { none: null })).toBe('');
    expect(await filled('[{{t}},{{f}},{{n}}]', { t: true, f: false, n: 1.5 })).toEqual([true, false, 1.5]);
  });

  it('keeps the digits of numbers', async () => {
    const body =
      '{"source":"{\\"a\\":{{n}},\\"b\\":{{#toJson}}l{{/toJson}}}","params":{"n":9007199254740993,"l":[1.0]}}';
    const { text } = await call('POST', '/_render/template', Buffer.from(body));
    expect(text).toBe('{"template_output":{"a":9007199254740993,"b":[1.0]}}');
  });

  it('has conditions, loops, defaults, paths and places of lists', async () => {
    expect(await filled('{{^x}}10{{/x}}{{x}}')).toBe(10);
    expect(await filled('{{^x}}10{{/x}}{{x}}', { x: 3 })).toBe(3);
    // As in Elasticsearch, a zero is a value.
    expect(await filled('"{{#x}}yes{{/x}}{{^x}}no{{/x}}"', { x: 0 })).toBe('yes');
    for (const x of [false, null, '', []]) expect(await filled('"{{^x}}no{{/x}}{{#x}}yes{{/x}}"', { x })).toBe('no');
    expect(await filled('[{{#l}}{{.}},{{/l}}0]', { l: [1, 2] })).toEqual([1, 2, 0]);
    expect(await filled('"{{#l}}{{n}}{{outer}} {{/l}}"', { l: [{ n: 'a' }, { n: 'b' }], outer: '!' })).toBe('a! b! ');
    expect(await filled('"{{a.b.c}} {{l.1}} {{l.size}}"', { a: { b: { c: 'deep' } }, l: ['x', 'y'] })).toBe('deep y 2');
    expect(await filled('"{{=<% %>=}}<%v%>{{v}}"', { v: 'x' })).toBe('x{{v}}');
    expect(await filled('"{{! a comment }}{{l}} {{o}}"', { l: [1, 'a'], o: { k: 'v' } })).toBe('[1, a] {k=v}');
  });

  it('has the functions toJson, join and url', async () => {
    const params = { l: ['a "b"', 'c'], o: { k: [true, null] }, s: 'x y', words: 'a b&c' };
    expect(await filled('{{#toJson}}l{{/toJson}}', params)).toEqual(params.l);
    expect(await filled('{{#toJson}}o{{/toJson}}', params)).toEqual(params.o);
    expect(await filled('{{#toJson}}s{{/toJson}}', params)).toBe('x y');
    expect(await filled('"{{#toJson}}nobody{{/toJson}}"', params)).toBe('');
    expect(await filled('"{{#join}}l{{/join}}"', params)).toBe('a "b",c');
    expect(await filled(`"{{#join delimiter='||'}}l{{/join delimiter='||'}}"`, params)).toBe('a "b"||c');
    expect(await filled('"{{#url}}{{words}}/{{s}}{{/url}}"', params)).toBe('a+b%26c%2Fx+y');
  });

  it('can be an object, and be sent in the query string', async () => {
    expect((await render({ size: '{{n}}', query: { term: { tag: '{{t}}' } } }, { n: 2, t: 'x"' })).body).toEqual({
      template_output: { size: '2', query: { term: { tag: 'x"' } } },
    });
    const source = encodeURIComponent('{"source":"{}"}');
    const path = `/_render/template?source=${source}&source_content_type=application/json`;
    expect(await done('GET', path)).toEqual({ template_output: {} });
  });

  it.each([
    ['{{#a}}', 'Unclosed section'],
    ['{{a', 'Unclosed tag'],
    ['{{/a}}', 'Unopened section'],
    ['{"a":{{> other}}}', 'partial templates are disabled: [other]'],
    ['{{#toJson}}a {{b}}{{/toJson}}', 'one and only one identifier'],
    ['{{#join}}{{/join}}', 'one and only one identifier'],
    ['{"a":', 'a text that is not JSON'],
    ['', 'template is missing'],
    [' ', 'a text that is not JSON'],
    ['[]', 'no JSON object'],
    ['"a"', 'no JSON object'],
  ])('is refused: %s', (source, reason) => refused(render(source), 400, reason));

  it('takes no other members and kinds', async () => {
    const post = (body: unknown): Promise<Answer> => call('POST', '/_search/template', body);
    await refused(post({ source: '{}', zzz: 1 }), 400, 'unknown field [zzz]');
    await refused(post({ source: '{}', params: [] }), 400, '[params] must be an object');
    await refused(post({ source: '{}', explain: 'maybe' }), 400, '[explain] must be [true] or [false]');
    await refused(post({ source: 7 }), 400, '[source] must be a text or an object');
    await refused(post({ source: '{}', id: 'x' }), 400, 'not both');
    await refused(post({ id: 'nobody' }), 404, 'unable to find script [nobody]');
    await refused(call('GET', '/_render/template/nobody', { id: 'other' }), 400, '[id] is not that of the path');
    await refused(call('GET', '/_render/template/nobody'), 404, 'unable to find script [nobody]');
    await refused(call('POST', '/_search/template'), 400, 'request body is required');
    await refused(call('POST', '/_search/template?nope=1', { source: '{}' }), 400, 'unrecognized parameter');
  });
});

describe('a hostile template', () => {
  it('reaches nothing but its parameters', async () => {
    const names = ['__proto__', 'constructor', 'constructor.name', 'toString', 'hasOwnProperty', 'l.length', 'l.map'];
    for (const name of names) {
      expect(await filled(`"{{${name}}}{{#${name}}}in{{/${name}}}"`, { l: [1], s: 'x' }), name).toBe('');
      expect(await filled(`"{{#o}}{{${name}}}{{/o}}"`, { o: { k: 1 } }), name).toBe('');
    }
    const own = Buffer.from(
      '{"source":"{\\"a\\":\\"{{__proto__.x}}{{p.polluted}}\\"}","params":{"__proto__":{"x":"own","polluted":1},"p":{}}}',
    );
    expect((await call('POST', '/_render/template', own)).body.template_output.a).toBe('own');
    expect(await filled('"{{s.length}}{{s.0}}"', { s: 'text' })).toBe('');
  });

  it('does not run away', async () => {
    const list = Array.from({ length: 1000 }, () => 0);
    const nest = (depth: number, inner: string): string => `${'{{#l}}'.repeat(depth)}${inner}${'{{/l}}'.repeat(depth)}`;
    const params = { l: list, long: 'x'.repeat(60_000) };
    await refused(render(`{"a":"${nest(5, 'x')}"}`, params), 400, 'takes too much');
    await refused(render(`{"a":"${nest(50, '')}"}`, params), 400, 'takes too much');
    await refused(render(`{"a":"${nest(2, '{{long}}')}"}`, params), 400, 'takes too much');
    await refused(render(`{"a":"${nest(2, '{{#toJson}}long{{/toJson}}')}"}`, params), 400, 'takes too much');
    await refused(render(`{"a":"${nest(2, `{{${'n.'.repeat(5000)}}}`)}"}`, params), 400, 'takes too much');
    await refused(render(`{"a":"${nest(51, '')}"}`, params), 400, 'nested deeper than [50]');
    await refused(render('{{#a}}'.repeat(10_000) + '{{/a}}'.repeat(5)), 400, 'search template cannot be read');
    await refused(render(`{{${' '.repeat(60_000)}`), 400, '[1000] spaces in a row');
    await refused(render(`{"a":"${'x'.repeat(65_536)}"}`), 400, 'more than [65535] bytes');
    await refused(render(`{{${`${' '.repeat(1000)}x`.repeat(60)}}}`), 400, 'a tag has more than [100] spaces');
    await refused(render(`{{a${`${' '.repeat(60)}x`.repeat(60)}`), 400, 'a tag has more than [100] spaces');
    await refused(render(`{{=<% %>=}}<%${`${' '.repeat(100)}x`.repeat(60)}%>`), 400, 'it changes its delimiters');
    // The slowest template that is taken: spaces in every tag.
    await render(`{"a":"${`{{${' '.repeat(100)}a}}`.repeat(620)}"}`);
    const empty = { a: Array.from({ length: 90_000 }, () => '') };
    const joined = "{{#join delimiter=''}}a{{/join delimiter=''}}";
    await refused(render(`{"a":"${joined.repeat(20)}"}`, empty), 400, 'takes too much');
    await refused(call('POST', '/_render/template', { source: '{}', params: { a: 'x'.repeat(2 ** 20) } }), 413, '');
    const deep = Buffer.from(`{"source":"{}","params":{"a":${'['.repeat(200)}${']'.repeat(200)}}}`);
    await refused(call('POST', '/_render/template', deep), 400, 'nested deeper than [100] levels');
  });

  it('shares what it may take with the others of its request', async () => {
    const one = { source: '{"min_score":1,"_source":"{{v}}"}', params: { v: 'x'.repeat(60_000) } };
    const body = lines(...Array.from({ length: 15 }, () => [{ index: 'mine' }, one]).flat());
    expect((await call('POST', '/_msearch/template', body)).status).toBe(200);
    const four = { source: '{"_source":"{{v}}{{v}}{{v}}{{v}}"}', params: one.params };
    const more = lines(...Array.from({ length: 6 }, () => [{ index: 'mine' }, four]).flat());
    await refused(call('POST', '/_msearch/template', more), 400, 'takes too much');
  });
});

describe('searching by a template', () => {
  const byTag = { source: '{"query":{"term":{"tag":"{{tag}}"}}}', params: { tag: 'red "blue"' } };

  it('answers as a search does', async () => {
    for (const path of ['/mine/_search/template', '/_search/template']) {
      for (const method of ['GET', 'POST']) {
        expect(ids(await done(method, path, byTag))).toContain('1');
      }
    }
    expect(ids(await done('POST', '/mine/_search/template', byTag))).toEqual(['1']);
    const { hits } = await done('POST', '/mine/_search/template?rest_total_hits_as_int=true', byTag);
    expect(hits.total).toBe(1);
    const explained = await done('POST', '/mine/_search/template', { ...byTag, explain: true, profile: true });
    expect(explained.hits.hits[0]._explanation).toBeDefined();
    expect(explained.profile).toBeDefined();
    const text = '{"source":"{\\"query\\":{\\"term\\":{\\"n\\":{{n}}}}}","params":{"n":9007199254740993}}';
    expect(ids(await done('POST', '/mine/_search/template', Buffer.from(text)))).toEqual([]);
  });

  it('takes no search that a search does not take', async () => {
    const answer = await call('POST', '/mine/_search/template', { source: '{"quary":{}}' });
    expect(answer.text).toBe((await call('POST', '/mine/_search', Buffer.from('{"quary":{}}'))).text);
    await refused(call('POST', '/gone/_search/template', { source: '{}' }), 404, 'index_not_found_exception');
  });

  it('of several answers each', async () => {
    const body = lines({ index: 'mine' }, byTag, {}, { source: '{\n"size":\n0}' }, { index: 'gone' }, { source: '{}' });
    const { responses } = await done('POST', '/_msearch/template', body);
    expect(responses.map((one: any) => one.status)).toEqual([200, 200, 404]);
    expect(ids(responses[0])).toEqual(['1']);
    const ofIndex = lines({}, byTag);
    expect((await done('GET', '/other/_msearch/template', ofIndex)).responses[0].hits.hits[0]._index).toBe('other');
    await refused(call('POST', '/_msearch/template', lines({}, { id: 'nobody' })), 404, 'unable to find script');
    await refused(call('POST', '/_msearch/template', '{}\n{"source":"{}"}'), 400, 'terminated by a newline [\\n]"');
    const inOneLine = call('POST', '/_msearch/template', '{}{"source":"{}"}');
    await refused(inOneLine, 400, 'terminated by a newline [\\n]: the body has no line break. curl removes those');
    await refused(call('POST', '/_msearch/template', '\n'), 400, 'no requests added');
  });
});

describe('a restricted key', () => {
  const all = { source: '{"query":{"match_all":{}}}' };

  it('searches by templates where it may search, and nowhere else', async () => {
    expect(ids(await done('POST', '/mine/_search/template', all, reader))).toEqual(['1', '2']);
    await refused(call('POST', '/other/_search/template', all, reader), 403, 'security_exception');
    await refused(call('POST', '/mine/_search/template', all, manager), 403, 'security_exception');
    // Without an index it searches those that it may.
    const { hits } = await done('POST', '/_search/template', all, reader);
    expect([...new Set(hits.hits.map((hit: any) => hit._index))]).toEqual(['mine']);
    const body = lines({ index: 'mine' }, all, { index: 'other' }, all);
    const { responses } = await done('POST', '/_msearch/template', body, reader);
    expect(responses.map((one: any) => one.status)).toEqual([200, 403]);
  });

  it('names no other index by what a template is filled in to', async () => {
    const lookup = { terms: { tag: { index: '{{index}}', id: '1', path: 'tag' } } };
    const by = (index: string): object => ({ source: { query: lookup }, params: { index } });
    expect(ids(await done('POST', '/mine/_search/template', by('mine'), reader))).toEqual(['1']);
    await refused(call('POST', '/mine/_search/template', by('other'), reader), 403, 'security_exception');
  });

  it('does not store scripts', async () => {
    const script = { script: { lang: 'mustache', source: '{}' } };
    await refused(call('PUT', '/_scripts/s', script, reader), 403, 'security_exception');
    await refused(call('GET', '/_scripts/s', undefined, reader), 403, 'security_exception');
    await refused(call('DELETE', '/_scripts/s', undefined, reader), 403, 'security_exception');
    await refused(call('POST', '/_render/template', all, manager), 403, 'security_exception');
  });
});

describe('stored scripts', () => {
  const store = (id: string, script: unknown): Promise<Answer> => call('PUT', `/_scripts/${id}`, { script });

  it('are kept, shown, used, replaced and deleted', async () => {
    const source = '{"size":{{n}}}';
    const put = await done('POST', '/_scripts/one', { script: { lang: 'mustache', source } }, manager);
    expect(put).toEqual({ acknowledged: true });
    const shown = { _id: 'one', found: true, script: { lang: 'mustache', source } };
    expect(await done('GET', '/_scripts/one', undefined, manager)).toEqual(shown);
    expect(ids(await done('POST', '/mine/_search/template', { id: 'one', params: { n: 1 } }, reader))).toHaveLength(1);
    expect(await done('GET', '/_render/template/one', { params: { n: 2 } })).toEqual({ template_output: { size: 2 } });
    const byId = lines({ index: 'mine' }, { id: 'one', params: { n: 0 } });
    expect((await done('POST', '/_msearch/template', byId, reader)).responses[0].hits.hits).toEqual([]);
    await done('PUT', '/_scripts/one/template', { script: { lang: 'mustache', source: { size: 3 } } });
    const { script } = await done('GET', '/_scripts/one');
    expect(script).toEqual({
      lang: 'mustache',
      source: '{"size":3}',
      options: { content_type: 'application/json;charset=utf-8' },
    });
    expect(await done('GET', '/_render/template/one')).toEqual({ template_output: { size: 3 } });
    expect(await done('DELETE', '/_scripts/one', undefined, manager)).toEqual({ acknowledged: true });
    const gone = await call('GET', '/_scripts/one');
    expect([gone.status, gone.body]).toEqual([404, { _id: 'one', found: false }]);
    await refused(call('DELETE', '/_scripts/one'), 404, 'stored script [one] does not exist and cannot be deleted');
  });

  it('have names like any', async () => {
    for (const id of ['__proto__', 'constructor', 'a%20b', '%C3%BC']) {
      expect((await store(id, { lang: 'mustache', source: '{}' })).status).toBe(200);
      expect((await done('GET', `/_scripts/${id}`)).found).toBe(true);
      await done('DELETE', `/_scripts/${id}`);
    }
    expect((await call('GET', '/_scripts/toString')).status).toBe(404);
  });

  it.each([
    [{ lang: 'painless', source: 'return 1' }, 'scripts of the language [painless] cannot be stored'],
    [{ lang: 'expression', source: '1' }, 'scripts of the language [expression] cannot be stored'],
    [{ source: '{}' }, 'must specify lang'],
    [{ lang: 'mustache' }, 'must specify source'],
    [{ lang: 'mustache', source: '{{#a}}' }, 'Unclosed section'],
    [{ lang: 'mustache', source: '{}', options: { content_type: 'text/plain' } }, '[options]'],
    [{ lang: 'mustache', source: '{}', zzz: 1 }, 'unknown field [zzz]'],
    [undefined, '[script]'],
  ])('of another kind are refused: %j', async (script, reason) => {
    await refused(store('bad', script), 400, reason);
    await refused(call('PUT', '/_scripts/bad/score', { script: { lang: 'mustache', source: '{}' } }), 400, '[score]');
    await refused(call('PUT', '/_scripts/a%23b', { script: { lang: 'mustache', source: '{}' } }), 400, "'#'");
    expect((await call('GET', '/_scripts/bad')).status).toBe(404);
  });

  it('are at most so many', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sparrow-scripts-'));
    mkdirSync(join(data, 'indices'));
    const full = Array.from({ length: 1000 }, (_, id) => ({
      id: String(id),
      source: ' '.repeat(8380),
      isObject: false,
    }));
    writeFileSync(join(data, 'scripts.json'), JSON.stringify({ format: 1, scripts: full }));
    const made = await startServer({ data, args: ['--deploy-at-start', 'false'] });
    try {
      const put = (id: number, source = '{}'): Promise<Answer> =>
        made.request('PUT', `/_scripts/${String(id)}`, { script: { lang: 'mustache', source } });
      await refused(put(1000), 400, 'no room for the stored script [1000]');
      expect((await put(7)).status).toBe(200);
      // Nor may all of them together be longer than a file that is written anew with every change.
      await refused(put(7, `{"_source":"${'x'.repeat(60_000)}"}`), 400, 'no room for the stored script [7]');
    } finally {
      await made.stop();
    }
  });

  it('survive the end of the process, and a file that is damaged is refused', async () => {
    const first = await startServer({ args: ['--deploy-at-start', 'false'] });
    const put = (id: number): Promise<Answer> =>
      first.request('PUT', `/_scripts/s${String(id)}`, { script: { lang: 'mustache', source: { size: id } } });
    // All at once: one change after the other, none of which undoes another.
    expect((await Promise.all(Array.from({ length: 20 }, (_, id) => put(id)))).map(({ status }) => status)).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
    await first.request('DELETE', '/_scripts/s3');
    await first.kill();
    const again = await startServer({ data: first.data, args: ['--deploy-at-start', 'false'] });
    for (let id = 0; id < 20; id += 1) {
      const { status, body } = await again.request('GET', `/_scripts/s${String(id)}`);
      expect([status, body.script?.source]).toEqual(id === 3 ? [404, undefined] : [200, `{"size":${String(id)}}`]);
    }
    await again.stop();
    const file = join(first.data, 'scripts.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(file, readFileSync(file, 'utf8').replace('"size', '"sizf'));
    await expect(startServer({ data: first.data, args: ['--deploy-at-start', 'false'] })).rejects.toThrow('is damaged');
  });
});
