// Snapshots of somebody who can write to the repository, and who makes all checksums anew: they are data or an error, and nothing else.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';
import { byTier } from '../tiers.mjs';

/** The lines of the file of a snapshot, as far as they are changed here. */
interface Info {
  indices: Record<string, unknown>;
  metadata?: unknown;
}
interface FileEntry {
  name: string;
  length: number;
  sha256: string;
}
interface Index {
  name: string;
  uuid: string;
  folder: string;
  metadata: any;
  aliases: Record<string, unknown>;
  files: FileEntry[];
}
interface Content {
  indices: Index[];
  global: Record<'pipelines' | 'templates' | 'settings' | 'inference', unknown>;
  models: unknown[];
  keys: string;
}
/** Changes both lines; `shaped` makes the text of the second from what it would be. */
type Change = (content: Content, index: Index, info: Info) => unknown;
type Shape = (text: string) => string;

const folder = mkdtempSync(join(tmpdir(), 'sparrow-foreign-'));
const [whole, used] = [join(folder, 'whole'), join(folder, 'used')];
const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
const ALL = { include_global_state: true, feature_states: ['security'], include_models: true };

let server: RunningServer;
let reader: string;
const call = (method: string, path: string, body?: unknown, apiKey?: string): Promise<Answer> =>
  server.request(method, path, body, apiKey === undefined ? {} : { apiKey });

/** Puts a changed snapshot in the repository, with checksums that are right. */
function put(change: Change, shaped: Shape = (text) => text): void {
  rmSync(used, { recursive: true, force: true });
  cpSync(whole, used, { recursive: true });
  const [name = ''] = readdirSync(join(used, 'snapshots'));
  const path = join(used, 'snapshots', name);
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const [info, content] = lines.map((line) => (JSON.parse(line) as { value: unknown }).value) as [Info, Content];
  const [index] = content.indices;
  if (index === undefined) throw new Error('the snapshot has no index');
  change(content, index, info);
  const values = [JSON.stringify(info), shaped(JSON.stringify(content))];
  const written = values.map((value) => `{"format":1,"sha256":"${sha256(value)}","value":${value}}\n`);
  writeFileSync(path, written.join(''));
}

/** Puts bytes in the repository in place of those of a file of the index. */
function replaceFile(index: Index, name: string, bytes: Buffer): void {
  const entry = index.files.find((file) => file.name === name);
  if (entry === undefined) throw new Error(`there is no file ${name}`);
  Object.assign(entry, { length: bytes.length, sha256: sha256(bytes) });
  mkdirSync(join(used, 'blobs', entry.sha256.slice(0, 2)), { recursive: true });
  writeFileSync(join(used, 'blobs', entry.sha256.slice(0, 2), entry.sha256), bytes);
}

const BUILT_IN = '.elser-2-elasticsearch';
/** An inference endpoint as a snapshot has it. */
const endpoint = (id: string, more: object): object => ({
  ...{ inference_id: id, task_type: 'sparse_embedding', service: 'elasticsearch', chunking_settings: {} },
  ...{ model_id: '.elser_model_2', num_allocations: 1, num_threads: 1, ...more },
});

const restore = (body: object = ALL): Promise<Answer> =>
  call('POST', '/_snapshot/used/s/_restore?wait_for_completion=true', body);

/** Every file below a folder. */
const everything = (below: string): string[] =>
  (readdirSync(below, { recursive: true }) as string[]).filter((name) => !name.startsWith('used')).sort();

beforeAll(async () => {
  server = await startServer({
    data: join(folder, 'data'),
    args: ['--repo-path', folder, '--deploy-at-start', 'false'],
  });
  const properties = {
    ...{ text: { type: 'text' }, word: { type: 'keyword' }, sparse: { type: 'sparse_vector' } },
    dense: { type: 'dense_vector', dims: 4 },
  };
  await call('PUT', '/docs', { mappings: { properties }, aliases: { also: {} } });
  const lines = Array.from(
    { length: 50 },
    (_, n) =>
      `{"index":{"_id":"${String(n)}"}}\n{"text":"red fox ${String(n)}","word":"w${String(n)}","dense":[1,2,3,${String(n)}],"sparse":{"a":1}}\n`,
  );
  await call('POST', '/docs/_bulk?refresh=true', lines.join(''));
  const roles = { reads: { indices: [{ names: ['docs'], privileges: ['read'] }] } };
  reader = (await call('POST', '/_security/api_key', { name: 'reader', role_descriptors: roles })).body
    .encoded as string;
  for (const location of ['whole', 'used']) {
    expect((await call('PUT', `/_snapshot/${location}`, { type: 'fs', settings: { location } })).status).toBe(200);
  }
  const taken = await call('PUT', '/_snapshot/whole/s?wait_for_completion=true', {
    include_global_state: true,
    feature_states: ['security'],
  });
  expect(taken.status, taken.text).toBe(200);
});
beforeEach(async () => {
  await call('DELETE', '/docs,others?ignore_unavailable=true');
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Some of each kind in the first tier. */
const some = <T>(cases: readonly T[]): readonly T[] => cases.filter((_, place) => place % byTier(6, 1) === 0);

const deep = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

describe('what leads elsewhere, says what cannot be, or is too deep', () => {
  it.each(
    some<[string, Change, Shape?]>([
      [
        'an index named by a path',
        (_, index, info) => {
          info.indices = { '../../others': info.indices['docs'] };
          index.name = '../../others';
        },
      ],
      ['an index that has no files', (content) => (content.indices = [])],
      ['a file named by a path', (_, { files }) => Object.assign(files[0] ?? {}, { name: '../../../others' })],
      ['a file named by an absolute path', (_, { files }) => Object.assign(files[0] ?? {}, { name: '/tmp/others' })],
      ['a file named twice', (_, { files }) => files.push(...files.slice(0, 1))],
      ['a hash that is a path', (_, { files }) => Object.assign(files[0] ?? {}, { sha256: '../'.repeat(21) + 'x' })],
      ['a length that no file has', (_, { files }) => Object.assign(files[0] ?? {}, { length: 2 ** 63 })],
      ['no commit', (_, index) => (index.files = index.files.filter(({ name }) => name !== 'meta.json'))],
      ['metadata that is none', (_, index) => (index.metadata = [])],
      ['a mapping that is none', (_, { metadata }) => (metadata.mapping = [1])],
      ['vectors of 4,294,967,296 dimensions', (_, { metadata }) => (metadata.mapping.properties.dense.dims = 2 ** 32)],
      [
        'a graph of 2,147,483,647 neighbours',
        (_, { metadata }) => (metadata.mapping.properties.dense.index_options = { type: 'hnsw', m: 2 ** 31 - 1 }),
      ],
      [
        'a mapping of 300,000 levels',
        () => undefined,
        (text) => text.replace('"properties":{', `"properties":{"deep":${deep(300_000)},`),
      ],
      ['a listing with metadata that is none', (_, __, info) => (info.metadata = 'none')],
      ['an alias named by a path', (_, index) => (index.aliases = { '../x': {} })],
      ['an alias that is everything', (_, index) => (index.aliases = { '*': {} })],
      ['an alias whose filter is none', (_, index) => (index.aliases = { also: { filter: { nope: 1 } } })],
      ['a pipeline that is none', ({ global }) => (global.pipelines = { p: { processors: [{ nope: {} }] } })],
      ['a setting that cannot be', ({ global }) => (global.settings = { 'search.max_buckets': '-5' })],
      ['an endpoint that is none', ({ global }) => (global.inference = { e: 5 })],
      ['an endpoint named by a path', ({ global }) => (global.inference = { '../e': endpoint('../e', {}) })],
      ['an endpoint under another name', ({ global }) => (global.inference = { e: endpoint('f', {}) })],
      [
        'a built-in endpoint that answers nothing',
        ({ global }) => (global.inference = { [BUILT_IN]: endpoint(BUILT_IN, { num_allocations: 0 }) }),
      ],
      [
        'an endpoint of a trillion threads',
        ({ global }) => (global.inference = { e: endpoint('e', { num_threads: 2 ** 40 }) }),
      ],
      [
        'a template for all indices whose mappings are a number',
        ({ global }) => (global.templates = { legacy: { all: { index_patterns: ['*'], mappings: 5 } } }),
      ],
      [
        '10,001 templates',
        ({ global }) => {
          const names = Array.from({ length: 10_001 }, (_, at) => `t${String(at)}`);
          const component = Object.fromEntries(names.map((name) => [name, { template: {} }]));
          global.templates = { component };
        },
      ],
      [
        'a field with a name of a million letters',
        (_, { metadata }) => (metadata.mapping.properties['x'.repeat(1e6)] = { type: 'keyword' }),
      ],
      [
        'a listing with metadata of a million numbers',
        (_, __, info) => (info.metadata = { all: Array.from({ length: 1e6 }, () => 0) }),
      ],
      [
        'a model named by a path',
        (content, { files }) => (content.models = [{ id: '../../others', config: {}, files }]),
      ],
      ['keys that are none', (content) => (content.keys = '{"format":1,"keys":[{"id":5,"hash":[]}]}')],
      ['keys of 40 MB', (content) => (content.keys = JSON.stringify({ format: 1, keys: [{ id: 'x'.repeat(40e6) }] }))],
    ]),
  )('is refused, and leaves nothing: %s', async (_, change, shaped) => {
    put(change, shaped);
    const before = everything(folder);
    const { status, body, text } = await restore();
    expect([400, 500], text.slice(0, 300)).toContain(status);
    // A sentence, and none that says that something broke.
    expect(body.error.root_cause[0].reason).toMatch(/\w+ \w+/);
    expect(body.error.type, text.slice(0, 300)).toMatch(
      /snapshot_restore_exception|repository_exception|illegal_argument_exception|invalid_\w+_name_exception|parsing_exception|parse_exception|index_name/,
    );
    expect(everything(folder)).toEqual(before);
    expect((await call('GET', '/docs')).status).toBe(404);
    expect((await call('GET', '/_security/_authenticate')).status).toBe(200);
  });

  it.each(
    some<[string, Change, Shape?]>([
      [
        'folders by paths',
        (_, index) => {
          Object.assign(index, { folder: '../../others', uuid: '../others' });
          Object.assign(index.metadata, { folder: '../../../others', uuid: '../../others', name: '../others' });
        },
      ],
      [
        'settings without an end',
        (_, { metadata }) =>
          (metadata.settings = { index: { max_result_window: '2147483647', number_of_shards: '1000000' } }),
      ],
      [
        'a file of synonyms',
        (_, { metadata }) =>
          (metadata.settings = {
            analysis: {
              analyzer: { default: { type: 'custom', tokenizer: 'standard', filter: ['passwords'] } },
              filter: { passwords: { type: 'synonym', synonyms_path: '/etc/passwd' } },
            },
          }),
      ],
      [
        '20,000 fields',
        (_, { metadata }) => {
          for (let at = 0; at < 20_000; at += 1) metadata.mapping.properties[`f${String(at)}`] = { type: 'keyword' };
        },
      ],
      [
        'fields of each other’s types',
        (_, { metadata }) => {
          const { properties } = metadata.mapping;
          [properties.text, properties.dense] = [properties.dense, properties.text];
        },
      ],
      [
        'places of vectors that no model filled',
        (_, { metadata }) => (metadata.slots = { text: { active: 4294967295, last: 0, fingerprint: 'x' } }),
      ],
    ]),
  )('is data: %s', async (_, change) => {
    put(change);
    const restored = await restore({});
    expect(restored.status, restored.text).toBe(200);
    const searched = await call('POST', '/docs/_search', {
      query: { bool: { should: [{ match: { text: 'fox' } }, { term: { word: 'w1' } }] } },
      fields: ['*'],
    });
    expect(searched.status, searched.text).toBeLessThan(500);
    expect((await call('PUT', '/docs/_doc/new', { text: 'x', word: 'y' })).status).toBeLessThan(500);
    const counted = await call('GET', '/docs/_count');
    expect([counted.status, counted.body.count], counted.text).toEqual([200, expect.any(Number)]);
    expect((await call('GET', '/docs/_doc/1')).body.found).toBe(true);
    expect(everything(folder).filter((name) => name.includes('others'))).toEqual([]);
  });
});

it('is refused where its values would take more memory than there is for a request', async () => {
  const limit = (bytes: string | null): Promise<Answer> =>
    call('PUT', '/_cluster/settings', { persistent: { 'indices.breaker.request.limit': bytes } });
  put(({ global }) => {
    // Two bytes of text are some fifty in memory.
    global.pipelines = { p: { processors: [], _meta: { all: Array.from({ length: 8e6 }, () => 0) } } };
  });
  expect((await limit('200mb')).status).toBe(200);
  try {
    const { status, body, text } = await restore();
    expect([status, body.error.type], text.slice(0, 300)).toEqual([429, 'circuit_breaking_exception']);
  } finally {
    await limit(null);
  }
});

describe('keys of a snapshot', () => {
  const forged = (more: object): string => {
    const roles = { all: { cluster: ['all'], indices: [{ names: ['*'], privileges: ['all'] }] } };
    const key = {
      id: 'forged',
      owner: false,
      username: 'owner',
      creation: 1,
      invalidated: false,
      hash: sha256('secret'),
      name: 'forged',
    };
    return JSON.stringify({ format: 1, keys: [{ ...key, roles, roleDescriptors: roles, metadata: {}, ...more }] });
  };
  const encoded = (id: string): string => Buffer.from(`${id}:secret`).toString('base64');
  const owner = (): string => Buffer.from(server.apiKey, 'base64').toString().split(':')[0] ?? '';

  it('are no owner keys, replace none that the server has, and come only with all privileges', async () => {
    const id = Buffer.from(reader, 'base64').toString().split(':')[0] ?? '';
    const known = [owner(), id];
    for (const keys of [forged({ owner: true }), ...known.map((one) => forged({ id: one, owner: false }))]) {
      await call('DELETE', '/docs?ignore_unavailable=true');
      put((content) => (content.keys = keys));
      const restored = await restore({ feature_states: ['security'] });
      expect([200, 400, 500], restored.text).toContain(restored.status);
      for (const one of ['forged', ...known]) {
        expect((await call('GET', '/_security/_authenticate', undefined, encoded(one))).status).toBe(401);
      }
      expect((await call('GET', '/_security/_authenticate')).status).toBe(200);
    }
    expect((await call('GET', '/_security/_authenticate', undefined, reader)).status).toBe(200);
    // A key that may restore snapshots does not get more rights by a snapshot.
    const roles = { restores: { cluster: ['manage'], indices: [{ names: ['*'], privileges: ['all'] }] } };
    const made = await call('POST', '/_security/api_key', { name: 'restores', role_descriptors: roles });
    put((content) => (content.keys = forged({})));
    const path = '/_snapshot/used/s/_restore?wait_for_completion=true';
    const refused = await call('POST', path, { feature_states: ['security'] }, made.body.encoded as string);
    expect(refused.status, refused.text).toBe(403);
    const plain = await call('POST', path, {}, made.body.encoded as string);
    expect([200, 500], plain.text).toContain(plain.status);
    expect((await call('GET', '/_security/_authenticate', undefined, encoded('forged'))).status).toBe(401);
    // The owner gets what it asks for: whose keys these are, nobody can tell.
    const whole = await call('POST', path, { indices: '-*', feature_states: ['security'] });
    expect(whole.status, whole.text).toBe(200);
    expect((await call('GET', '/_security/_authenticate', undefined, encoded('forged'))).status).toBe(200);
  });
});

describe('files of an index', () => {
  it.each(some(['.idx', '.term', '.pos', '.spw', '.fast', '.fieldnorm', 'meta.json']))(
    'that are not those of its commit are named: %s',
    async (kind) => {
      put((_, index) => {
        const entry = index.files.find(({ name }) => name.endsWith(kind));
        if (entry === undefined) throw new Error(`there is no file ${kind}`);
        const bytes = readFileSync(join(whole, 'blobs', entry.sha256.slice(0, 2), entry.sha256));
        bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0x10;
        replaceFile(index, entry.name, bytes);
      });
      const { status, body } = await restore({});
      expect([status, body.error.type]).toEqual([500, 'snapshot_restore_exception']);
      expect(body.error.reason).toMatch(/cannot be opened: .*(?:crc32|no commit)/);
      expect((await call('GET', '/docs')).status).toBe(404);
    },
  );

  // tantivy believes the number of layers that a list of stored documents begins with, and asks for 2^61 bytes at once, which ended the
  // process: such a file is looked at before tantivy reads it.
  it('are refused where a count in them, with checksums that are right, has no end', async () => {
    const victim = await startServer({ args: ['--repo-path', folder, '--deploy-at-start', 'false'] });
    try {
      put((_, index) => {
        const bytes = (kind: string): [string, Buffer] => {
          const { name, sha256: hash } = index.files.find((file) => file.name.endsWith(kind)) ?? index.files[0]!;
          return [name, readFileSync(join(whole, 'blobs', hash.slice(0, 2), hash))];
        };
        const [name, store] = bytes('.store');
        const forged = withEndlessLayers(store);
        replaceFile(index, name, forged);
        replaceFile(index, 'meta.json', withChecksum(bytes('meta.json')[1], name, forged));
      });
      await victim.request('PUT', '/_snapshot/used', { type: 'fs', settings: { location: 'used' } });
      const path = '/_snapshot/used/s/_restore?wait_for_completion=true';
      const { status, body } = await victim.request('POST', path, {});
      expect([status, body.error.type]).toEqual([500, 'snapshot_restore_exception']);
    } finally {
      await victim.kill();
    }
  });
});

/** tantivy's file of stored documents: its last 28 bytes say where the layers begin; behind them come its checksum and their size. */
function withEndlessLayers(file: Buffer): Buffer {
  const size = file.readUInt32LE(file.length - 8);
  const end = file.length - 8 - size;
  const body = Buffer.from(file.subarray(0, end));
  // In groups of seven bits, the last one marked: 2^58 layers.
  const count = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0x84]);
  count.copy(body, Number(body.readBigUInt64LE(end - 28 + 4)));
  const text = file.toString('utf8', end, end + size).replace(/"crc":\d+/, `"crc":${String(crc32(body))}`);
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(text.length, 0);
  tail.writeUInt32LE(file.readUInt32LE(file.length - 4), 4);
  return Buffer.concat([body, Buffer.from(text), tail]);
}

/** The list of files of a commit with another checksum of one of them, and its own. */
function withChecksum(meta: Buffer, name: string, file: Buffer): Buffer {
  const parsed = JSON.parse(meta.toString()) as { sparrow: { files: Record<string, number[][]>; crc32?: string } };
  parsed.sparrow.files[name] = [[file.length, crc32(file)]];
  delete parsed.sparrow.crc32;
  const text = JSON.stringify(parsed).slice(0, -2);
  return Buffer.from(`${text},"crc32":"${crc32(text).toString(16).padStart(8, '0')}"}}`);
}
