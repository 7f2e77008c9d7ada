// Random bodies with hostile keys against an oracle: what a key has no right to is never changed and never appears in an answer.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random, SEED, rounds } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

const ROUNDS = rounds(60);

/** What stands in documents, mappings, settings and aliases of others, as a word and as a number. */
const WORD = 'canary7f3a';
const NUMBER = '7311731173';

/** Indices of others; some have names that are no strings in careless JSON. */
const FOREIGN = ['secret', '2024', 'true', 'null', 'secret-1', 'constructor'];
const OWN = ['mine', 'mine-1'];

/** Privileges on `mine*`, by kind of key. */
const KINDS = ['none', 'read', 'write', 'create_doc', 'create', 'manage', 'view_index_metadata', 'all'] as const;

const tried = { requests: 0, refused: 0, letThrough: 0 };

let server: RunningServer;
let keys: Map<string, string>;
let foreign: string;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const index of FOREIGN) {
    await owner('PUT', `/${index}`, { mappings: { _meta: { word: WORD } }, aliases: { [`its-${index}`]: {} } });
    await owner('PUT', `/${index}/_doc/1`, { word: WORD, words: [WORD], n: Number(NUMBER) });
    await owner('PUT', `/${index}/_doc/2?refresh=true`, { word: WORD, words: [WORD], n: Number(NUMBER) });
  }
  for (const target of FOREIGN) {
    await owner('PUT', `/_ingest/pipeline/to-${target}`, { processors: [{ set: { field: '_index', value: target } }] });
  }
  await owner('PUT', '/_ingest/pipeline/by-field', {
    processors: [{ set: { field: '_index', value: '{{to}}', ignore_empty_value: true } }],
  });
  keys = new Map();
  for (const kind of KINDS) {
    const indices =
      kind === 'none' ? [] : [{ names: ['mine*'], privileges: [kind, 'read'].slice(0, kind === 'write' ? 2 : 1) }];
    const body = { name: 'hostile', role_descriptors: { role: { indices } } };
    keys.set(kind, (await owner('POST', '/_security/api_key', body))['encoded'] as string);
  }
  foreign = await state();
}, 60_000);

afterAll(async () => {
  await server.stop();
  console.log(
    `hostile requests: seed ${String(SEED)}, ${String(KINDS.length)} kinds of keys: ${String(tried.requests)} tried, ` +
      `${String(tried.refused)} refused, ${String(tried.letThrough)} let through to indices of others`,
  );
});

async function owner(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const { status, text, body: answer } = await server.request(method, path, body);
  expect(status, `${method} ${path} ${text}`).toBeLessThan(300);
  return answer as Record<string, unknown>;
}

/** Everything of the others: documents with their versions, mappings, settings, aliases, and which indices there are. */
async function state(): Promise<string> {
  const docs = FOREIGN.flatMap((_index) => ['1', '2', '3'].map((_id) => ({ _index, _id })));
  const parts = await Promise.all([
    server.request('POST', '/_mget', { docs }),
    server.request('GET', '/*,-mine*?expand_wildcards=all&flat_settings=true'),
    server.request('GET', '/_cat/indices/*,-mine*?h=index,status&s=index&expand_wildcards=all'),
    server.request('POST', '/*,-mine*/_search?expand_wildcards=all&size=0&track_total_hits=true', {
      aggs: { n: { sum: { field: 'n' } } },
    }),
  ]);
  return parts.map(({ text }, at) => (at === 3 ? text.replace(/"took":\d+/, '') : text)).join('\n');
}

/** JSON with members in pairs, so that a name may stand twice. */
type Json = string | number | boolean | null | Raw | readonly Json[] | Members;
class Members {
  constructor(readonly pairs: readonly (readonly [string, Json])[]) {}
}
/** Text that goes in as it is. */
class Raw {
  constructor(readonly text: string) {}
}
const obj = (...pairs: (readonly [string, Json])[]): Members => new Members(pairs);

class Hostile {
  constructor(private readonly random: Random) {}

  /** A string, some of whose letters are escapes. */
  private text(value: string): string {
    const letters = [...value].map((letter) =>
      this.random.chance(0.08)
        ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
        : JSON.stringify(letter).slice(1, -1),
    );
    return `"${letters.join('')}"`;
  }

  write(json: Json): string {
    if (json instanceof Raw) return json.text;
    if (json instanceof Members) {
      const members = json.pairs.map(([name, value]) => `${this.text(name)}:${this.write(value)}`);
      return `{${members.join(',')}}`;
    }
    if (typeof json === 'string') return this.text(json);
    if (typeof json === 'object' && json !== null)
      return `[${(json as readonly Json[]).map((item) => this.write(item)).join(',')}]`;
    return String(json);
  }

  other(): string {
    return this.random.pick(FOREIGN);
  }

  /** A name as it may stand in a path or a string. */
  expression(): string {
    const { random } = this;
    return random.pick([
      () => this.other(),
      () => `its-${this.other()}`,
      () => random.pick(OWN),
      () => `${random.pick(OWN)},${this.other()}`,
      () => `${this.other()} ,mine`,
      () =>
        random.pick([
          '*',
          '_all',
          's*',
          '*e*',
          'its-*',
          '2*',
          '*,-mine',
          'mine*,-mine',
          '-mine,*',
          '*,-s*',
          'm*,s*',
          '**',
          '?ecret',
        ]),
      () =>
        random.pick([
          '<secret>',
          '<{secret}>',
          '<mine-{now/d}>',
          '<secret-{now/y{yyyy}}>',
          '<{now/y{yyyy}}>',
          '<mine>',
          '<*>',
        ]),
      () =>
        random.pick([
          '',
          ' ',
          ',',
          '-',
          '.',
          '..',
          'SECRET',
          'cluster:secret',
          'mine:secret',
          '__proto__',
          'mine/../secret',
          'mine%2Csecret',
        ]),
    ])();
  }

  /** Something where a name of an index is expected. */
  name(): Json {
    const { random } = this;
    return random.pick<() => Json>([
      () => this.expression(),
      () => this.expression(),
      () => this.other(),
      () =>
        new Raw(random.pick(['2024', 'true', 'null', '2024.0', '2.024e3', '+2024', '02024', '-2024', 'false', '{}'])),
      () => [this.expression()],
      () => [random.pick(OWN), this.other()],
      () => obj(['name', this.other()]),
    ])();
  }

  /** Members, some of them twice, or below `__proto__`. */
  members(...pairs: (readonly [string, Json])[]): Members {
    const { random } = this;
    const more = pairs.filter(() => random.chance(0.1)).map(([name]) => [name, this.name()] as const);
    const all = [...pairs, ...more].toSorted(() => random.next() - 0.5);
    return random.chance(0.04) ? obj(...all, ['__proto__', obj(...pairs)]) : new Members(all);
  }

  query(depth = 0): Json {
    const { random } = this;
    const lookup = (): Json =>
      obj([
        'terms',
        obj(['word', this.members(['index', this.name()], ['id', random.pick<Json>(['1', 1])], ['path', 'words'])]),
      ]);
    const like = (): Json =>
      obj([
        'more_like_this',
        obj(
          ['fields', ['word']],
          ['like', [this.members(['_index', this.name()], ['_id', '1'])]],
          ['min_term_freq', 1],
          ['min_doc_freq', 1],
        ),
      ]);
    const wrapper = (): Json => {
      const inner = this.write(this.query(depth + 1)) + random.pick(['', '', ' ', ' }', '\n{}', ' x', '\u0000']);
      return obj(['wrapper', this.members(['query', Buffer.from(inner).toString('base64')])]);
    };
    const some = (): Json[] => random.several(1, 2, () => this.query(depth + 1));
    const nested =
      depth > 2
        ? []
        : [
            wrapper,
            wrapper,
            () => obj(['bool', obj([random.pick(['must', 'should', 'filter', 'must_not']), some()])]),
            () => obj(['constant_score', obj(['filter', this.query(depth + 1)])]),
            () => obj(['function_score', obj(['query', this.query(depth + 1)])]),
            () => obj(['dis_max', obj(['queries', some()])]),
          ];
    return random.pick<() => Json>([
      lookup,
      lookup,
      like,
      () => obj(['match_all', obj()]),
      () => obj(['terms', obj(['_index', [this.name()]])]),
      ...nested,
    ])();
  }

  search(): Json {
    const { random } = this;
    return obj(
      ['query', this.query()],
      ...random.some<readonly [string, Json]>(
        [
          [
            'aggs',
            obj(
              ['a', obj(['filter', this.query()])],
              ['t', obj(['terms', obj(['field', 'word.keyword'])])],
              ['s', obj(['sum', obj(['field', 'n'])])],
              ['h', obj(['top_hits', obj()])],
            ),
          ],
          ['post_filter', this.query()],
          ['rescore', obj(['window_size', 5], ['query', obj(['rescore_query', this.query()])])],
          ['indices_boost', [obj([this.expression(), 2])]],
          ['explain', true],
          ['highlight', obj(['fields', obj(['*', obj(['highlight_query', this.query()])])])],
          ['suggest', obj(['s', obj(['text', WORD.slice(0, -1)], ['term', obj(['field', 'word'])])])],
          ['fields', ['*']],
        ],
        0.2,
      ),
    );
  }

  document(): Json {
    const { random } = this;
    return this.members(
      ['to', this.other()],
      [
        random.pick(['a', 'delete', 'index', 'constructor', '_index', '__proto__', 'toString']),
        random.pick<Json>([1, obj(['_index', this.other()], ['_id', '1'])]),
      ],
    );
  }

  pipeline(): string {
    return this.random.pick(['by-field', `to-${this.other()}`, '_none', 'nobody']);
  }

  bulk(): string {
    const { random } = this;
    const lines = random.several(1, 5, () => {
      const kind = random.pick(['index', 'create', 'update', 'delete']);
      const meta = this.members(
        ...random.some<readonly [string, Json]>(
          [
            ['_index', this.name()],
            ['_index', this.name()],
          ],
          0.7,
        ),
        ...random.some<readonly [string, Json]>([['_id', random.pick<Json>(['1', 1, '3', true])]], 0.8),
        ...random.some<readonly [string, Json]>(
          [
            ['pipeline', this.pipeline()],
            ['require_alias', true],
            ['op_type', 'create'],
          ],
          0.15,
        ),
      );
      const action = this.write(random.chance(0.04) ? this.members([kind, meta], ['delete', meta]) : obj([kind, meta]));
      if (kind === 'delete') return action;
      return `${action}\n${this.write(kind === 'update' ? obj(['doc', this.document()], ['doc_as_upsert', true]) : this.document())}`;
    });
    return `${lines.join(random.pick(['\n', '\n', '\r\n', '\n\n']))}\n`;
  }

  action(): Json {
    const { random } = this;
    const kind = random.pick(['add', 'remove', 'remove_index']);
    return obj([
      kind,
      this.members(
        random.pick<readonly [string, Json]>([
          ['index', this.name()],
          ['indices', [this.name(), random.pick(OWN)]],
        ]),
        ...(kind === 'remove_index'
          ? []
          : [
              random.pick<readonly [string, Json]>([
                ['alias', random.pick<() => Json>([() => 'mine-a', () => this.name()])()],
                ['aliases', ['mine-b', this.name()]],
              ]),
            ]),
        ...random.some<readonly [string, Json]>([['filter', this.query()]], kind === 'add' ? 0.2 : 0),
      ),
    ]);
  }

  request(): { readonly method: string; readonly path: string; readonly body?: Buffer } {
    const { random } = this;
    const at = encodeURIComponent(random.chance(0.6) ? random.pick(OWN) : this.expression() || '*');
    const any = random.chance(0.3) ? '' : `/${at}`;
    const named = (): string => encodeURIComponent(this.expression() || 'x');
    const json = (path: string, body: Json, method = 'POST') => ({ method, path, body: Buffer.from(this.write(body)) });
    const lines = (path: string, body: string) => ({ method: 'POST', path, body: Buffer.from(body) });
    const options = random.pick([
      '',
      '',
      '?ignore_unavailable=true',
      '?expand_wildcards=all',
      '?allow_no_indices=false',
    ]);
    return random.pick<() => { method: string; path: string; body?: Buffer }>([
      () => lines(`${any}/_bulk${random.chance(0.2) ? `?pipeline=${this.pipeline()}` : ''}`, this.bulk()),
      () => lines(`${any}/_bulk`, this.bulk()),
      () =>
        json(
          `${any}/_mget`,
          obj([
            'docs',
            random.several(1, 3, () => this.members(['_index', this.name()], ['_id', random.pick<Json>(['1', 1])])),
          ]),
        ),
      () =>
        json(
          `${any}/_mtermvectors`,
          obj(['docs', [this.members(['_index', this.name()], ['_id', '1'], ['fields', ['word']])]]),
        ),
      () =>
        lines(
          `${any}/_msearch`,
          random
            .several(1, 3, () => `${this.write(this.members(['index', this.name()]))}\n${this.write(this.search())}`)
            .join('\n') + '\n',
        ),
      () => json(`${any}/_search${options}`, this.search()),
      () => json(`${any}/_search${options}`, this.search()),
      () => json(`${any}/_count${options}`, obj(['query', this.query()])),
      () => json(`/${at}/_explain/1`, obj(['query', this.query()])),
      () => json(`${any}/_validate/query?explain=true`, obj(['query', this.query()])),
      () => json(`${any}/_field_caps?fields=*`, obj(['index_filter', this.query()])),
      () => json(`/${at}/_delete_by_query${options}`, obj(['query', this.query()])),
      () => json(`/${at}/_update_by_query?pipeline=${this.pipeline()}`, obj(['query', this.query()])),
      () =>
        json(
          '/_reindex',
          obj(
            ['source', this.members(['index', this.name()], ['query', this.query()])],
            [
              'dest',
              this.members(
                ['index', this.name()],
                ...random.some<readonly [string, Json]>(
                  [
                    ['pipeline', this.pipeline()],
                    ['op_type', 'create'],
                  ],
                  0.3,
                ),
              ),
            ],
          ),
        ),
      () => json('/_aliases', obj(['actions', random.several(1, 2, () => this.action())])),
      () => json(`${any}/_alias`, this.members(['index', this.name()], ['alias', this.name()]), 'PUT'),
      () => json(`/mine-${String(random.int(2, 4))}`, obj(['aliases', obj([this.expression(), obj()])]), 'PUT'),
      () =>
        json(
          `/${at}/_${random.pick(['clone', 'shrink', 'split'])}/${random.pick(['mine-copy', named()])}`,
          obj(['aliases', obj([this.expression(), obj()])]),
          'PUT',
        ),
      () => json(`/${at}/_rollover/${named()}`, obj(['aliases', obj([this.expression(), obj()])])),
      () => json(`/${at}/_doc/${random.pick(['1', '3'])}?pipeline=${this.pipeline()}`, this.document(), 'PUT'),
      () => json(`/${at}/_mapping`, obj(['properties', obj(['x', obj(['type', 'keyword'])])]), 'PUT'),
      () => json(`/${at}/_settings`, obj(['index.blocks.write', false]), 'PUT'),
      () => ({ method: random.pick(['GET', 'DELETE']), path: `/${at}/_doc/1` }),
      () => ({ method: 'DELETE', path: `/${named()}` }),
      () => ({
        method: 'POST',
        path: `/${named()}/_${random.pick(['close', 'open', 'forcemerge', 'refresh', 'flush', 'cache/clear'])}`,
      }),
      () => ({
        method: 'GET',
        path: `/${named()}${random.pick(['', '/_mapping', '/_settings', '/_alias', '/_stats', '/_segments', '/_recovery', '/_search_shards', '/_mapping/field/*'])}`,
      }),
      () => ({
        method: 'GET',
        path: random.pick([
          '/_stats',
          '/_mapping',
          '/_alias',
          '/_settings',
          '/_segments',
          '/_search',
          '/_cat/indices',
          '/_cat/aliases',
          '/_cat/shards',
          '/_cat/segments',
          '/_cat/recovery',
          '/_cat/count',
          '/_search_shards',
          '/_field_caps?fields=*',
        ]),
      }),
      () => ({
        method: 'GET',
        path: `/_${random.pick(['cat/indices', 'cat/aliases', 'cat/shards', 'alias', 'resolve/index', 'cat/count', 'data_stream'])}/${named()}`,
      }),
      () => ({ method: 'GET', path: `/${named()}/_search?q=${encodeURIComponent('*:*')}` }),
    ])();
  }
}

/** Names of others that an answer may hold because the request held them. */
function leaks(text: string): boolean {
  return text.includes(WORD) || text.includes(NUMBER) || /7\.3117311\d*E?/.test(text);
}

describe.each(KINDS)('a hostile key with [%s]', (kind) => {
  it('sees and changes nothing of others', { timeout: 60_000 + ROUNDS * 1000 }, async () => {
    const random = new Random(SEED * 31 + KINDS.indexOf(kind));
    const hostile = new Hostile(random);
    const apiKey = keys.get(kind) ?? '';
    const statuses = new Map<number, number>();
    for (let round = 0; round < ROUNDS; round += 1) {
      if (round % 20 === 0) {
        for (const index of OWN) await server.request('PUT', `/${index}/_doc/1?refresh=true`, { word: 'mine', n: 1 });
      }
      const { method, path, body } = hostile.request();
      const headers = { 'content-type': /_bulk|_msearch/.test(path) ? 'application/x-ndjson' : 'application/json' };
      const { status, text } = await server.request(method, path, body, {
        apiKey,
        headers: body === undefined ? {} : headers,
      });
      const what = `${kind}, round ${String(round)}: ${method} ${path}\n${body?.toString() ?? ''}\n${String(status)} ${text}`;
      const after = method === 'GET' ? foreign : await state();
      tried.requests += 1;
      tried.refused += Number(status === 403);
      tried.letThrough += Number(leaks(text) || after !== foreign);
      // A suggestion's own text is the request's.
      expect(leaks(text), what).toBe(false);
      expect(status, what).toBeLessThan(500);
      expect(after, what).toBe(foreign);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    // The requests are not all nonsense: some are refused for want of rights, and who may do something does it.
    if (ROUNDS >= 60) {
      expect(statuses.get(403) ?? 0).toBeGreaterThan(0);
      if (kind === 'all') expect(statuses.get(200) ?? 0).toBeGreaterThan(ROUNDS / 10);
    }
  });
});
