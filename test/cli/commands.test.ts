// Every command against a real server.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { issue } from '../support/certificates.js';
import { type RunningServer, startServer } from '../support/server.js';
import { isFirstTier } from '../tiers.mjs';
import { type Ended, begin, sparrow } from './support.js';

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-cli-'));
  server = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
  await server.request('PUT', '/articles', {
    mappings: {
      properties: {
        title: { type: 'text', copy_to: 'meaning' },
        meaning: { type: 'semantic_text' },
        n: { type: 'integer' },
      },
    },
  });
  const titles = [
    'Blue whales are the largest animals',
    'Bread rises because yeast makes gas',
    'Sore muscles need rest',
  ];
  for (const [n, title] of titles.entries()) await server.request('PUT', `/articles/_doc/${String(n)}`, { title, n });
  await server.request('POST', '/articles/_refresh');
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a command against the server, whose key it finds in the data directory. */
function run(...args: string[]): Promise<Ended> {
  return sparrow([...args, '--url', server.url, '--data', server.data]);
}

/** Runs a command that should work; gives its answer in JSON. */
async function json(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect([code, stderr], args.join(' ')).toEqual([0, '']);
  return JSON.parse(stdout);
}

/** Runs a command that should work; gives what it says. */
async function said(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args);
  expect([code, stderr], args.join(' ')).toEqual([0, '']);
  expect(stdout).not.toContain('\u001b');
  return stdout;
}

describe('a command line that makes no sense', () => {
  it.each([
    [['serach', 'x'], "unknown command 'serach', did you mean search?"],
    [['serach', '--help'], "unknown command 'serach', did you mean search?"],
    [['nothing-like-it', 'x'], "unknown command 'nothing-like-it' (see --help)"],
    [['search', 'x', '--indx', 'articles'], "unknown option '--indx', did you mean --index?"],
    [['search', '--', '--indx'], "required option '--index <name>' not specified"],
    [['status', '--ulr', 'x'], "unknown option '--ulr', did you mean --url?"],
    [['key', 'lst'], "unknown command 'lst' of 'key', did you mean list?"],
    [['models', 'begin'], "unknown command 'begin' of 'models', it has list, start, stop, test"],
    [['key'], "'key' needs one of its commands: new, list, revoke, reset-owner"],
    [['search', 'whales'], "required option '--index <name>' not specified"],
    [['search', '--index', 'a'], 'a question is needed'],
    [['search', 'b', '--index', 'a', '--body', '{}'], 'give a question, or a request with --body, and not both'],
    [['search', '--index', 'a', 'b', '--size', 'many'], 'it must be a whole number, at least 0'],
    [['search', '--index', 'a', 'b', '--by', 'luck'], 'Allowed choices are hybrid, meaning, words, sparse, dense'],
    [['import', 'x.dat'], 'x.dat: say with --format whether it is jsonl, json, csv, tsv'],
    [['import', 'x.xlsx'], 'x.xlsx is a spreadsheet, which is not read: save the spreadsheet as CSV'],
    [['import', 'a.csv', '--vectors', 'dense', '--no-semantic'], '--no-semantic makes no vectors: leave out --vectors'],
    [['import', 'a.csv', '--semantic', 'a', '--vectors', 'both'], 'Allowed choices are hybrid, sparse, dense'],
    [['import', 'a.csv', 'b.csv', '--follow'], '--follow takes one file'],
    [['key', 'new', 'shop'], 'say what the key may do'],
    [['completion', 'tcsh'], 'Allowed choices are bash, zsh, fish'],
    [['demo', 'rich person', '--remove'], '--remove takes no question'],
    [['check'], 'name a data directory or, with --repository, a snapshot repository'],
    [['check', 'data', '--repository', 'r'], 'name a data directory or, with --repository, a snapshot repository'],
    [['repair', 'a'], "required option '--into <dir>' not specified"],
    [['--prot', '1'], 'unknown option --prot, did you mean --port?'],
    [['status', '--port', '9478'], "unknown option '--port', say --url http://127.0.0.1:PORT"],
    [['serve', '--port', 'x'], '--port expects a port from 0 to 65535, not [x]'],
  ])('%j is one sentence, and ends with 2', async (args, sentence) => {
    const { code, stdout, stderr } = await sparrow(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^sparrow: .*\n$/);
    expect(stderr).toContain(sentence);
  });
});

/** All commands but `serve`, whose help is that of the settings. */
const COMMANDS = 'import search eval status models tasks key snapshot check repair completion'.split(' ');

/** The commands of each group. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  tasks: ['list', 'show', 'cancel'],
  models: ['list', 'start', 'stop', 'test'],
  key: ['new', 'list', 'revoke', 'reset-owner'],
  snapshot: ['create', 'list', 'restore', 'delete'],
};

describe('--help', () => {
  it('says which commands there are, and the settings of the server', async () => {
    const { code, stdout, stderr } = await sparrow(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const word of ['serve', ...COMMANDS]) {
      expect(stdout).toMatch(new RegExp(`^  ${word} `, 'm'));
    }
    expect(stdout).toContain('--port');
    expect((await sparrow(['serve', '--help'])).stdout).toContain('--slow-request-seconds');
    const version = await sparrow(['--version']);
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(await sparrow(['version'])).toEqual(version);
  });

  it.each([[], ['key'], ['key', 'new'], ['serve']])('is the same behind the word help: %j', async (...words) => {
    const [behind, option] = [await sparrow(['help', ...words]), await sparrow([...words, '--help'])];
    expect(behind).toEqual(option);
    expect([behind.code, behind.stderr]).toEqual([0, '']);
    const unknown = await sparrow(['help', 'serach']);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean search?')]);
  });

  it.each([...COMMANDS, 'key new'])('is there for %s', async (words) => {
    const { code, stdout, stderr } = await sparrow([...words.split(' '), '--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: sparrow ${words}`));
  });
});

/** What the help of a command says of its option `--json`. */
async function told(words: string): Promise<string> {
  const { stdout } = await sparrow([...words.split(' '), '--help']);
  return /^ +--json(?: \[file\])? +(.*(?:\n {5,}.*)*)/m.exec(stdout)?.[1]?.replaceAll(/\s+/g, ' ') ?? '';
}

describe('--json', () => {
  it.each([
    ...Object.entries(GROUPS).flatMap(([group, words]) => words.map((word) => `${group} ${word}`)),
    ...['import', 'search', 'eval', 'status', 'demo', 'check', 'repair', 'migrate'],
  ])('of %s says what comes out', async (words) => {
    expect(await told(words)).toMatch(/^print one line of JSON.*: (?:\{|the |a list of |for each )/);
  });
});

describe('where the server is, and who asks', () => {
  it('is said by options or the environment', async () => {
    const env = { SPARROW_URL: server.url, SPARROW_API_KEY: server.apiKey };
    expect(await sparrow(['status'], env)).toMatchObject({ code: 0, stderr: '' });
    const file = join(folder, 'key');
    await writeFile(file, `${server.apiKey}\n`);
    expect(await sparrow(['status'], { SPARROW_URL: server.url, SPARROW_API_KEY_FILE: file })).toMatchObject({
      code: 0,
    });
    expect(await sparrow(['status', '--url', server.url, '--key', server.apiKey])).toMatchObject({ code: 0 });
    expect(await sparrow(['status'], { SPARROW_URL: server.url, SPARROW_DATA: server.data })).toMatchObject({
      code: 0,
    });
  });

  it('is asked for in one sentence where it is missing or wrong', async () => {
    const none = await sparrow(['status', '--url', 'http://127.0.0.1:1']);
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringMatching(/^sparrow: no server answers at http:\/\/127\.0\.0\.1:1 .*\n$/),
    ]);
    const keyless = await sparrow(['status', '--url', server.url, '--data', '/nowhere']);
    expect([keyless.code, keyless.stderr]).toEqual([
      1,
      expect.stringMatching(/^sparrow: the server at .* wants a key: .*--key.*\n$/),
    ]);
    const wrong = await sparrow(['status', '--url', server.url, '--key', 'YTpi']);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringMatching(/^sparrow: unable to authenticate.*\n$/)]);
    const nonsense = await sparrow(['status', '--url', 'http://']);
    expect([nonsense.code, nonsense.stderr]).toEqual([1, 'sparrow: [http://] is not an address of a server\n']);
  });
});

it('status tells what there is', async () => {
  const status = await json('status');
  expect(status).toMatchObject({ url: server.url, status: 'ready', models: ['.sparse_encoder_model_2'] });
  expect(status.indices).toContainEqual(expect.objectContaining({ name: 'articles', documents: 3 }));
  const told = await said('status');
  expect(told).toMatch(/^articles +3 +[\d.]+ kB +open$/m);
  expect(told).toMatch(/^health is yellow, as is usual for one server: \d+ ind.* replicas, which only/m);
});

it('a path that cannot be used is told with its option', async () => {
  const file = join(folder, 'a-file');
  await writeFile(file, '');
  const data = join(folder, 'unused');
  for (const [option, path, args] of [
    ['--audit-log', '/nope/x', ['--data', data]],
    ['--data', join(file, 'sub'), []],
  ] as const) {
    const { code, stderr } = await sparrow(['--port', '0', option, path, ...args]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^sparrow: (--[\w-]+): .* cannot be used: (?:there is nothing of that name|a part of its path is not a folder)$/m,
      ),
    ]);
    expect(stderr).toContain(`sparrow: ${option}: ${path} cannot`);
  }
});

it('a folder of other files is not taken for a data directory, unless that is wanted', async () => {
  const own = join(folder, 'photos');
  await mkdir(own);
  await writeFile(join(own, 'summer.jpg'), '');
  const { code, stderr } = await sparrow(['--port', '0', '--data', own]);
  expect([code, await readdir(own)]).toEqual([1, ['summer.jpg']]);
  expect(stderr).toContain(`sparrow: --data: ${own} holds other files and is no data directory of Sparrow`);
  expect(stderr).toContain(`make the folder ${join(own, 'indices')}`);
  await mkdir(join(own, 'indices'));
  const insisting = begin(['--port', '0', '--data', own]);
  await expect.poll(() => existsSync(join(own, 'owner.key'))).toBe(true);
  insisting.process.kill();
  expect((await insisting.ended).code).toBe(0);
});

it('an address with https of a server that speaks http is told with the right one', async () => {
  for (const args of [['status'], ['search', 'whales', '--index', 'articles']]) {
    const url = server.url.replace('http:', 'https:');
    const told = await sparrow(args, { SPARROW_URL: url, SPARROW_API_KEY: server.apiKey });
    expect([told.code, told.stderr]).toEqual([
      1,
      `sparrow: the server at ${url} speaks http, not https: its address is ${server.url} (--url or SPARROW_URL)\n`,
    ]);
  }
});

it('a certificate that is not trusted is told as that', async () => {
  const { cert, key } = issue('own');
  const secure = createServer({ cert, key }, (_, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(secure, 'listening');
  const url = `https://127.0.0.1:${String((secure.address() as AddressInfo).port)}`;
  const told = await sparrow(['status', '--url', url, '--key', 'YTpi']);
  expect([told.code, told.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^sparrow: the certificate of the server at .* is not trusted \(.*\): .*NODE_EXTRA_CA_CERTS.*\n$/,
    ),
  ]);
  secure.close();
});

describe('search', () => {
  it('finds by words and meaning, fused, and shows passages', async () => {
    const text = await said('search', 'the', 'biggest', 'creature', '--index', 'articles', '--size', '1');
    expect(text).toMatch(/^ 1 {2}0 .*\n {4}Blue whales are the largest animals\n.*found, \d+ ms\n$/);
    const answer = await json('search', 'yeast', '--index', 'articles', '--by', 'words');
    expect(answer.hits.hits.map((hit: any) => hit._id)).toEqual(['1']);
    const meaning = await json(
      'search',
      'tired muscles',
      '--index',
      'articles',
      '--by',
      'meaning',
      '--field',
      'meaning',
    );
    expect(meaning.hits.hits[0]._id).toBe('2');
  });

  it('needs no more than the right to read', async () => {
    const made = await server.request('POST', '/_security/api_key', {
      name: 'reader',
      role_descriptors: { r: { indices: [{ names: ['articles'], privileges: ['read'] }] } },
    });
    const as = ['--url', server.url, '--key', made.body.encoded as string, '--index', 'articles'];
    const found = await sparrow(['search', 'yeast', ...as]);
    expect([found.code, found.stderr], found.stderr).toEqual([
      0,
      'the key may not see the fields of [articles], for which it needs view_index_metadata: the server chooses where to look\n',
    ]);
    expect(found.stdout).toMatch(/^ 1 {2}1 /);
    const fields = await sparrow(['search', 'yeast', ...as, '--field', 'title', '--json']);
    expect([fields.code, fields.stderr]).toEqual([0, '']);
    const by = await sparrow(['search', 'yeast', ...as, '--by', 'words']);
    expect([by.code, by.stderr]).toEqual([
      1,
      'sparrow: the key may not see the fields of [articles], which --by needs: take a key with view_index_metadata, or leave out --by\n',
    ]);
  });

  it('shows what a document says where it has no passage', async () => {
    await server.request('PUT', '/flags/_doc/1?refresh=true', { name: 'a', isOpen: false, n: 7, list: [1] });
    expect(await said('search', '--index', 'flags', '--body', '{}')).toContain('name: a isOpen: false n: 7\n');
    await server.request('DELETE', '/flags');
  });

  it('keeps to a filter, and names fields in it that there are not', async () => {
    const ids = async (...args: string[]) =>
      (await json('search', 'animals and bread', '--index', 'articles', ...args)).hits.hits.map((hit: any) => hit._id);
    for (const by of ['hybrid', 'meaning', 'words', 'sparse']) {
      expect(await ids('--by', by, '--filter', 'n:[1 TO 2] AND NOT n:2'), by).toEqual(['1']);
    }
    // One value needs no syntax, whatever signs are in it.
    expect(await ids('--filter', 'n=1')).toEqual(['1']);
    await server.request('PUT', '/signs/_doc/1?refresh=true', { name: 'a "b" (c) \\ d: e' });
    const signs = async (value: string) =>
      (await json('search', 'b', '--index', 'signs', '--filter', `name.keyword=${value}`)).hits.hits.length as number;
    expect([await signs('a "b" (c) \\ d: e'), await signs('a')]).toEqual([1, 0]);
    await server.request('DELETE', '/signs');
    const fields = ['titel^2', 'title', 'ti*'];
    for (const args of [
      ['x', '--filter', 'titel=x'],
      ['x', '--filter', 'n:1 OR title:"a:b" OR titel:x'],
      ['--body', '{"query":{"match":{"titel":"x"}}}'],
      ['--body', JSON.stringify({ query: { multi_match: { query: 'bread', fields } } })],
    ]) {
      const { code, stderr } = await run('search', '--index', 'articles', ...args);
      expect([code, stderr], args.join(' ')).toEqual([
        0,
        '[articles] has no field [titel], so nothing is found by it\n',
      ]);
    }
    // Neither the first nor the last is the only one that counts.
    expect(await ids('--filter', 'n=1', '--filter', 'n:>1')).toEqual([]);
    expect(await ids('--filter', 'n:>1', '--filter', 'n=1')).toEqual([]);
    expect(await ids('--filter', 'n:<2', '--filter', 'n:>0')).toEqual(['1']);
    const mistaken = async (filter: string): Promise<string> =>
      (await run('search', 'x', '--index', 'articles', '--filter', filter)).stderr;
    expect(await mistaken('n<2')).toContain('a comparison is written as n:<50');
    expect(await mistaken('name=a AND n:1')).toContain('everything after the = is one value');
    const both = await run('search', '--index', 'articles', '--body', '{}', '--filter', 'n:1');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('leave out --filter')]);
  });

  it('finds a book that is longer than what passages are looked for in', async () => {
    const text = `a lighthouse keeper ${'writes letters to nobody '.repeat(50_000)}`;
    await server.request('PUT', '/books/_doc/1?refresh=true', { text });
    expect(await said('search', 'lighthouse', '--index', 'books')).toContain('a lighthouse keeper');
    await server.request('DELETE', '/books');
  });

  it('takes a whole request', async () => {
    const body = '{"query":{"term":{"n":1}},"_source":false}';
    const file = join(folder, 'request.json');
    await writeFile(file, body);
    for (const given of [body, `@${file}`]) {
      const answer = await json('search', '--index', 'articles', '--body', given);
      expect(answer.hits.hits).toMatchObject([{ _id: '1' }]);
    }
  });

  it.each([
    [['--index', 'nowhere', 'x'], 'no such index [nowhere]; there is only [articles]\n'],
    [['--index', 'nowhere', '--body', '{}'], 'no such index [nowhere]; there is only [articles]\n'],
    [['--index', 'articles', 'x', '--field', 'titel'], '[articles] has no field [titel]'],
    [
      ['--index', 'articles', 'x', '--field', 'n'],
      '[articles] has no text, semantic_text or sparse_vector field to look in',
    ],
    [['--index', 'articles', '--body', '{"query":{"nonsense":{}}}'], 'nonsense'],
  ])('says what is wrong with %j', async (args, sentence) => {
    const { code, stderr } = await run('search', ...args);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: .*\n$/)]);
    expect(stderr).toContain(sentence);
  });
});

describe('key', () => {
  it('makes keys that may do what was said, lists and ends them', async () => {
    const made = await run('key', 'new', 'shop', '--index', 'articles', '--expires', '90d');
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('shown this once')]);
    const apiKey = made.stdout.trim();
    expect((await server.request('GET', '/articles/_count', undefined, { apiKey })).status).toBe(200);
    expect((await server.request('DELETE', '/articles', undefined, { apiKey })).status).toBe(403);
    const [shop] = (await json('key', 'list')).filter((key: any) => key.name === 'shop');
    const listed = await said('key', 'list');
    expect(listed).toMatch(/^\S+ +shop +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d +valid +articles: read$/m);
    expect(listed).toMatch(/ owner .* valid +everything$/m);
    expect(await said('key', 'revoke', shop.id)).toBe(`${shop.id as string} is revoked\n`);
    expect((await server.request('GET', '/articles/_count', undefined, { apiKey })).status).toBe(401);
    expect(await said('key', 'list')).not.toContain('shop');
    expect(await said('key', 'list', '--all')).toMatch(/shop .* revoked/);
    const again = await run('key', 'revoke', 'shop', '--name');
    expect([again.code, again.stderr]).toEqual([
      1,
      'sparrow: no valid key that can be revoked has the name shop; the owner key is replaced by `sparrow key reset-owner`\n',
    ]);
  });

  it('says of an index that is not there that the key is for none yet', async () => {
    const { code, stderr } = await run('key', 'new', 'slip', '--index', 'artikles', 'art*', 'articles');
    expect(code).toBe(0);
    expect(stderr).toMatch(/^there is no index \[artikles\] yet: .*\nkey .* shown this once:\n$/);
  });

  it('shows how a time is written where one is not', async () => {
    for (const time of ['soon', '-1', '1w', '90 d']) {
      const { code, stderr } = await run('key', 'new', 'late', '--index', 'articles', `--expires=${time}`);
      expect([code, stderr]).toEqual([2, expect.stringContaining('a number with a unit, such as 90d, 12h or 30m')]);
    }
  });

  it('refuses to reset the owner key under a running server', async () => {
    const { code, stderr } = await sparrow(['key', 'reset-owner', '--data', server.data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another process: stop the server')]);
    const nowhere = await sparrow(['key', 'reset-owner', '--data', folder]);
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('there is no owner key in')]);
  });

  it('resets the owner key while no server runs', async () => {
    const args = ['--deploy-at-start', 'false'];
    const before = await startServer({ args });
    await before.stop();
    const { code, stdout } = await sparrow(['key', 'reset-owner', '--data', before.data, '--json']);
    expect(code).toBe(0);
    const { encoded } = JSON.parse(stdout);
    expect((await readFile(join(before.data, 'owner.key'), 'utf8')).trim()).toBe(encoded);
    const after = await startServer({ data: before.data, args });
    try {
      expect((await after.request('GET', '/', undefined, { apiKey: encoded })).status).toBe(200);
      expect((await after.request('GET', '/', undefined, { apiKey: before.apiKey })).status).toBe(401);
    } finally {
      await after.stop();
    }
  });
});

it('models lists, starts and stops', async () => {
  const text = await said('models');
  expect(text).toMatch(/^\.sparse_encoder_model_2 +sparse .* started /m);
  expect(text).toMatch(/^\.all-minilm-l6-v2 +dense .* not started /m);
  expect(await said('models', 'start', '.all-minilm-l6-v2', '--workers', '1')).toBe('.all-minilm-l6-v2 is started\n');
  const [dense] = (await json('models', 'list')).filter((model: any) => model.kind === 'dense');
  expect(dense.deployments).toMatchObject([{ state: 'started', number_of_allocations: 1 }]);
  expect(await said('models', 'stop', '.all-minilm-l6-v2')).toBe('.all-minilm-l6-v2 is stopped\n');
  expect(await said('models', 'stop', '.all-minilm-l6-v2')).toBe('.all-minilm-l6-v2 was not started\n');
  const unknown = await run('models', 'start', 'no-such-model');
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('no-such-model')]);
});

it('tasks shows jobs, waits for them, and cancels them', async () => {
  const reindex = async (rate: string) => {
    const query = `wait_for_completion=false&requests_per_second=${rate}`;
    const body = { source: { index: 'articles', size: 1 }, dest: { index: 'copy' } };
    return (await server.request('POST', `/_reindex?${query}`, body)).body.task as string;
  };
  const slow = await reindex('0.01');
  await expect.poll(() => said('tasks')).toContain(`${slow}  reindex`);
  expect((await json('tasks')).map((task: any) => `${task.node as string}:${String(task.id)}`)).toContain(slow);
  expect(await said('tasks', 'show', slow)).toMatch(/running\n$/);
  expect(await said('tasks', 'cancel', slow)).toBe(`${slow} was asked to stop\n`);
  await expect.poll(() => said('tasks')).toBe('no jobs run; --all shows those that have ended\n');
  expect(await said('tasks', 'list', '--all')).toMatch(new RegExp(`^${slow} +reindex .* cancelled +reindex`, 'm'));
  const quick = await reindex('-1');
  const known = await json('tasks', 'show', quick, '--watch');
  expect(known).toMatchObject({ completed: true, response: { total: 3 } });
  expect(await said('tasks', 'list', '--all')).toMatch(
    new RegExp(`^${quick} +reindex +3 +3 .* completed +reindex`, 'm'),
  );
  expect((await json('tasks', 'list', '--all'))[0]).toMatchObject({
    completed: true,
    task: { action: known.task.action },
  });
  expect((await run('tasks', 'list', '--all', '--watch')).code).toBe(2);
  const { code, stderr } = await run('tasks', 'show', 'a:1');
  expect([code, stderr]).toEqual([1, expect.stringContaining('a:1')]);
});

it('snapshot makes backups and brings them back', async () => {
  expect(await said('snapshot', 'list')).toBe('no snapshots yet: `sparrow snapshot create` makes one\n');
  expect(await json('snapshot', 'list')).toEqual([]);
  const nowhere = await run('snapshot', 'list', '--repository', 'nowhere');
  expect([nowhere.code, nowhere.stderr]).toEqual([1, 'sparrow: there is no snapshot repository [nowhere]\n']);
  expect(await said('snapshot', 'create', 'monday', '--index', 'articles')).toMatch(/^monday: 1 index in \d/);
  const empty = await run('snapshot', 'create', 'empty', '--index', 'artikles*');
  expect([empty.code, empty.stderr]).toEqual([
    0,
    'warning: there is no index artikles*, so nothing is in this snapshot\n',
  ]);
  await said('snapshot', 'delete', 'empty');
  const whole = await json('snapshot', 'create');
  expect(whole.snapshot).toMatch(/^\d{8}-\d{6}$/);
  expect(await said('snapshot', 'list')).toMatch(/^monday +SUCCESS .* articles$/m);
  expect(await said('snapshot', 'restore', 'monday', '--suffix', '-old')).toBe(
    'restored: articles-old (without aliases; --aliases restores them too)\n',
  );
  expect((await server.request('GET', '/articles-old/_count')).body.count).toBe(3);
  const open = await run('snapshot', 'restore', 'monday');
  expect([open.code, open.stderr]).toEqual([1, expect.stringContaining('articles')]);
  expect(await said('snapshot', 'delete', 'monday')).toBe('monday is deleted\n');
  expect((await json('snapshot')).map((one: any) => one.snapshot)).toEqual([whole.snapshot]);
  expect(existsSync(join(folder, 'snapshots', 'backups'))).toBe(true);
});

it('snapshot restores beside what is there, and says with which option', async () => {
  await server.request('PUT', '/logs-1', { aliases: { logs: { is_write_index: true } } });
  await said('snapshot', 'create', 'logged', '--index', 'logs-1');
  const there = await run('snapshot', 'restore', 'logged');
  expect([there.code, there.stderr]).toEqual([1, expect.stringContaining(': add --suffix -restored to restore it')]);
  await server.request('POST', '/logs/_rollover');
  const twice = await run('snapshot', 'restore', 'logged', '--suffix', '-restored', '--aliases');
  expect([twice.code, twice.stderr]).toEqual([
    1,
    expect.stringMatching(/more than one write index.*: add --no-aliases/),
  ]);
  const restored = 'restored: logs-1-restored';
  const suffixed = ['snapshot', 'restore', 'logged', '--suffix', '-restored'];
  const aliasesOf = async (): Promise<unknown> =>
    (await server.request('GET', '/logs-1-restored/_alias')).body['logs-1-restored'].aliases;
  for (const [options, leftOut] of [
    [[], ' (without aliases; --aliases restores them too)'],
    [['--no-aliases'], ''],
  ] as const) {
    expect(await said(...suffixed, ...options)).toBe(`${restored}${leftOut}\n`);
    expect(await aliasesOf()).toEqual({});
    await server.request('DELETE', '/logs-1-restored');
  }
  await server.request('POST', '/_aliases', { actions: [{ remove: { index: '*', alias: 'logs' } }] });
  expect(await said(...suffixed, '--aliases')).toBe(`${restored}\n`);
  expect(await aliasesOf()).toEqual({ logs: { is_write_index: true } });
  await said('snapshot', 'delete', 'logged');
  await server.request('DELETE', '/logs-1,logs-000002,logs-1-restored');
});

it('snapshot list and restore find what another server backed up', async () => {
  await said('snapshot', 'create', 'shared', '--index', 'articles');
  const other = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
  try {
    const there = (...args: string[]): Promise<Ended> =>
      sparrow(['snapshot', ...args, '--url', other.url, '--data', other.data]);
    const listed = await there('list');
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/^shared +SUCCESS .* articles$/m)]);
    const missing = await there('restore', 'nothing');
    expect(missing.stderr).toMatch(
      /there is no snapshot \[nothing\] in the repository \[backups\]: it has .*shared\n$/,
    );
    const deleted = await there('delete', 'shared');
    expect(deleted.stderr).toBe(
      'sparrow: the repository [backups] is not registered on this server: `sparrow snapshot create` registers it\n',
    );
    const restored = await there('restore', 'shared');
    expect([restored.code, restored.stdout]).toEqual([0, 'restored: articles\n']);
    expect((await other.request('GET', '/articles/_count')).body.count).toBe(3);
    // It was registered only while it was read, and not to be written into.
    expect((await other.request('GET', '/_snapshot')).body).toEqual({});
    const { body: key } = await other.request('POST', '/_security/api_key', {
      name: 'watcher',
      role_descriptors: { watcher: { cluster: ['monitor', 'monitor_snapshot'] } },
    });
    const refused = await there('list', '--key', key.encoded);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('; this key may not register it\n')]);
    expect((await there('create', 'own')).code).toBe(0);
    expect((await there('delete', 'own')).code).toBe(0);
  } finally {
    await other.stop();
    await said('snapshot', 'delete', 'shared');
  }
});

it('check and repair want a directory that nobody has open', async () => {
  const busy = await sparrow(['check', server.data]);
  expect([busy.code, busy.stderr]).toEqual([
    1,
    expect.stringMatching(/in use by another process: stop the server that has it open, and run this again\.\n$/),
  ]);
  for (const args of [
    ['check', folder],
    ['repair', folder, '--into', join(folder, 'repaired')],
  ]) {
    const other = await sparrow(args);
    expect([other.code, other.stderr]).toEqual([1, `sparrow: ${folder} is not the data directory of a server\n`]);
  }
  const absent = join(folder, 'nothing');
  for (const args of [
    ['check', absent],
    ['check', '--repository', absent],
    ['repair', absent, '--into', join(folder, 'repaired')],
  ]) {
    const none = await sparrow(args);
    expect([none.code, none.stderr], args.join(' ')).toEqual([1, `sparrow: there is no folder ${absent}\n`]);
  }
  expect(existsSync(join(folder, 'repaired'))).toBe(false);
});

it('eval measures the ways to search', async () => {
  const directory = join(folder, 'collection');
  await promisify(execFile)('mkdir', [directory]);
  const lines = (rows: object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  await writeFile(
    join(directory, 'corpus.jsonl'),
    lines([
      { _id: 'w', title: 'Whales', text: 'Blue whales are the largest animals.' },
      { _id: 'b', title: '', text: 'Bread rises because yeast makes gas.' },
    ]),
  );
  await writeFile(
    join(directory, 'queries.jsonl'),
    lines([
      { _id: '1', text: 'largest animals' },
      { _id: '2', text: 'yeast' },
    ]),
  );
  await writeFile(join(directory, 'qrels.test.tsv'), 'query-id\tcorpus-id\tscore\n1\tw\t1\n2\tb\t2\n');
  const file = join(folder, 'report.json');
  const { code, stdout, stderr } = await run('eval', directory, '--no-dense', '--json', file);
  expect([code, stderr.split('\n')[1]]).toEqual([0, 'searching (qrels.test.tsv)']);
  expect(stdout).toMatch(/^2 documents in .*, 2 queries\n/);
  const report = JSON.parse(await readFile(file, 'utf8'));
  expect(report).toMatchObject({ documents: 2, queries: 2, judgements: 'qrels.test.tsv' });
  expect(report.table.map((row: any) => [row.search, row['nDCG@10'], row['recall@100']])).toEqual([
    ['words', 1, 1],
    ['sparse', 1, 1],
    ['words and sparse', 1, 1],
  ]);
  expect(report.command).toBe('sparrow eval DIR --no-dense --json FILE --url URL --data FOLDER');
  expect((await server.request('GET', '/sparrow-eval')).status).toBe(404);
  const empty = await run('eval', folder);
  expect([empty.code, empty.stderr]).toEqual([1, `sparrow: ${folder} holds no qrels.<split>.tsv\n`]);
});

it('npm run eval is the same command', async () => {
  const script = fileURLToPath(new URL('../../scripts/eval.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--help']);
  expect(stdout).toContain('Usage: sparrow eval');
});

describe('completion', () => {
  it('of bash completes commands, their words and options', async () => {
    const script = join(folder, 'sparrow.bash');
    await writeFile(script, (await sparrow(['completion', 'bash'])).stdout);
    const complete = async (...words: string[]) => {
      const quoted = ['sparrow', ...words].map((word) => `'${word}'`).join(' ');
      const line = `source ${script}; COMP_WORDS=(${quoted}); COMP_CWORD=${String(words.length)}; _sparrow; echo "\${COMPREPLY[@]}"`;
      return (await promisify(execFile)('bash', ['--norc', '-c', line])).stdout.trim().split(' ');
    };
    expect(await complete('se')).toEqual(['serve', 'search']);
    expect(await complete('key', 're')).toEqual(['revoke', 'reset-owner']);
    expect(await complete('search', '--si')).toEqual(['--size']);
    expect(await complete('serve', '--slow')).toEqual(['--slow-request-seconds']);
    expect(await complete('--po')).toEqual(['--port']);
    expect(await complete('search', '--by', '')).toEqual(['hybrid', 'meaning', 'words', 'sparse', 'dense']);
    expect(await complete('import', 'a.txt', '--format', 'js')).toEqual(['jsonl', 'json']);
  });

  it.each(['zsh', 'fish'])('of %s names every command', async (shell) => {
    const { code, stdout } = await sparrow(['completion', shell]);
    expect(code).toBe(0);
    for (const word of ['import', 'reset-owner', 'follow', 'slow-request-seconds']) expect(stdout).toContain(word);
  });
});

// Loading it takes half a minute of processor time.
describe.skipIf(isFirstTier)('demo', () => {
  it('loads a dictionary, finds words by what they mean, and cleans up behind itself', async () => {
    const shown = await said('demo');
    expect(shown).toMatch(/^2,000 meanings in \[demo\] in .*\n/);
    const [, first = ''] = shown.split('\n\n');
    // No gloss of the right word has a word of the question: only its meaning leads there.
    expect(first).toMatch(/^“the study of stars”\n {2}by words, /);
    const [byWords = '', byBoth = ''] = first.split('by words and meaning');
    expect(byWords).not.toContain('▸');
    expect(byBoth).toContain('▸ astronomy');
    expect(shown).toContain(`${server.url}   `);
    expect(shown.split('“')).toHaveLength(7);

    const { loaded, questions } = await json('demo', 'rich person');
    expect(loaded).toBe(0);
    expect(questions).toHaveLength(1);
    expect(questions[0].hybrid.hits[0].words).toContain('rich person');

    // What the page about agents shows is what they get of it.
    const page = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8');
    const [, request = ''] = /```sh\n[^`]*-d '([^']*)'\n```/.exec(page) ?? [];
    const [, answer = ''] = /```json answer\n([^`]*)```/.exec(page) ?? [];
    const { body } = await server.request('POST', '/mcp', JSON.parse(request));
    // The models' products of 8-bit numbers are rounded differently by different processors, which the third decimal shows.
    const near = (name: string, value: unknown): unknown =>
      name === 'relevance' ? expect.closeTo(value as number, 2) : value;
    expect(body.result.structuredContent).toEqual(JSON.parse(answer, near));

    expect(await said('demo', '--remove')).toBe('[demo] is deleted\n');
    expect(await said('demo', '--remove')).toBe('there is no index [demo]\n');
  });

  it('completes a dictionary of which a part is missing', async () => {
    await json('demo', 'x', '--index', 'other-demo');
    const query = { query: { term: { part_of_speech: 'verb' } } };
    const { body } = await server.request('POST', '/other-demo/_delete_by_query?refresh=true', query);
    expect(body.deleted).toBeGreaterThan(100);
    expect((await json('demo', 'x', '--index', 'other-demo')).loaded).toBe(2000);
    expect((await server.request('GET', '/other-demo/_count')).body.count).toBe(2000);
    await said('demo', '--index', 'other-demo', '--remove');
  });

  it("writes to nobody's own index, and deletes none", async () => {
    for (const args of [['demo'], ['demo', '--remove']]) {
      const { code, stdout, stderr } = await run(...args, '--index', 'articles');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        'sparrow: [articles] is one of your own indices: name another one for the demo with --index\n',
      );
    }
    expect((await server.request('GET', '/articles/_count')).body.count).toBe(3);
  });
});

// At the end: this leaves indices behind, and a model that is started.
const IN_JSON = [
  ['status', ['status']],
  ['models list', ['models', 'list']],
  ['demo', ['demo', 'rich person', '--index', 'demo-of-json']],
  ['import', ['import', '-', '--format', 'jsonl', '--index', 'import-of-json']],
  ['key revoke', ['key', 'revoke', 'key-of-json', '--name']],
] as const;
const FIRST_IN_JSON = IN_JSON.filter(([words]) => words !== 'demo');
it.each(isFirstTier ? FIRST_IN_JSON : IN_JSON)('--json of %s names the members that there are', async (words, args) => {
  if (words === 'key revoke') await run('key', 'new', 'key-of-json', '--index', 'articles');
  const value = await json(...args);
  const [members = ''] = /(?<=\{)[\w, ]+/.exec(await told(words)) ?? [];
  const shown = Array.isArray(value) ? value[0] : value;
  expect(members.split(', ').toSorted()).toEqual(Object.keys(shown).toSorted());
});
