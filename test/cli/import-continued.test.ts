// `sparrow import` of a file that was imported before, in part or as it was, that grows, or by a key that may do little, against a real server.
import { createHash } from 'node:crypto';
import { appendFile, truncate, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

import { importing, lines, numbered } from './importing.js';
import { begin, sparrow } from './support.js';

const { server, imported, file, count, documents } = await importing();

describe('an interrupted import', () => {
  it('goes on where it stopped, without a document twice', async () => {
    const path = await file('long.jsonl', lines(numbered(0, 4000)));
    const ids = new Set<string>();
    // Between the command and the server: breaks the connection after some batches.
    let batches = 0;
    let breaking = true;
    const between = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url?.includes('_bulk') === true && breaking && (batches += 1) > 5) {
          request.socket.destroy();
          return;
        }
        const body = Buffer.concat(chunks);
        const headers = {
          authorization: request.headers.authorization ?? '',
          'content-type': request.headers['content-type'] ?? '',
        };
        void fetch(server.url + (request.url ?? ''), {
          method: request.method ?? 'GET',
          headers: body.length === 0 ? { authorization: headers.authorization } : headers,
          ...(body.length === 0 ? {} : { body }),
        }).then(async (answer) => {
          response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
          response.end(Buffer.from(await answer.arrayBuffer()));
        });
      });
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${String((between.address() as { port: number }).port)}`;
    try {
      const args = ['import', path, '--batch', '100', '--url', url, '--data', server.data];
      const first = await sparrow(args);
      expect([first.code, first.stderr]).toEqual([
        1,
        expect.stringMatching(
          /long\.jsonl: no server answers .*; 500 documents are written, run this again to go on\n$/,
        ),
      ]);
      breaking = false;
      const second = await sparrow([...args, '--json']);
      expect(second.code).toBe(0);
      expect(JSON.parse(second.stdout)).toMatchObject([{ written: 3500, skipped: 500, rejected: 0 }]);
    } finally {
      between.close();
      between.closeAllConnections();
    }
    await server.request('POST', '/long/_refresh');
    const { body } = await server.request('POST', '/long/_search', { size: 10_000, _source: ['n'] });
    for (const hit of body.hits.hits) ids.add(String(hit._source.n));
    expect([body.hits.total.value, ids.size]).toEqual([4000, 4000]);
  });

  it('by Ctrl-C keeps what is done, and says so', async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, n) => `${String(n)},"a text of some length that is number ${String(n)}"\n`,
    );
    const path = await file('stopped.csv.gz', gzipSync(`n,text\n${rows.join('')}`));
    const args = [
      'import',
      path,
      '--batch',
      '50',
      '--id',
      'n',
      '--semantic',
      'text',
      '--url',
      server.url,
      '--data',
      server.data,
    ];
    const { process: child, ended } = begin(args);
    const written = async () => {
      await server.request('POST', '/stopped/_refresh');
      return ((await server.request('GET', '/stopped/_count')).body.count ?? 0) as number;
    };
    await expect.poll(written, { timeout: 30_000, interval: 50 }).toBeGreaterThan(0);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([130, `${path}: finishing what is under way; Ctrl-C again ends at once\n`]);
    expect(stdout).toContain('interrupted: run this again to go on');
    const kept = await written();
    const { mappings } = (await server.request('GET', '/stopped/_mapping')).body.stopped;
    expect(Object.values(mappings._meta.sparrow_import)).toMatchObject([{ records: kept, done: false }]);
  });

  it('begins anew where the file is another one, and behind the end where it grew', async () => {
    const path = await file('changing.jsonl', lines(numbered(0, 10)));
    await imported(path);
    await appendFile(path, lines(numbered(10, 15)));
    expect(await imported(path)).toMatchObject({ written: 5, skipped: 10 });
    expect(await count('changing')).toBe(15);
    await file('changing.jsonl', lines(numbered(100, 115)));
    await utimes(path, new Date(), new Date(Date.now() + 10_000));
    expect(await imported(path)).toMatchObject({ written: 15, skipped: 0 });
    // Each line replaces the one at its place.
    expect((await documents('changing')).map(({ _source }) => _source.n).sort()).toEqual(
      numbered(100, 115).map(({ n }) => n),
    );
  });

  it('begins anew where the file has changed behind its begin, whatever its size and its time', async () => {
    const row = (n: number, word: string) => `{"n":${String(n)},"text":"${word.repeat(40_000)}"}\n`;
    const path = await file('behind.jsonl', row(1, 'a') + row(2, 'a') + row(3, 'a'));
    const time = new Date(2020, 1, 1);
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    // In the middle: only the time tells.
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'a'));
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    expect((await documents('behind')).map(({ _source }) => _source.text[0]).sort()).toEqual(['a', 'a', 'b']);
    // At the end, with the time of before.
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'c'));
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    expect(await imported(path)).toMatchObject({ written: 0, skipped: 3 });
    // Where it grew, too.
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'd') + row(4, 'a'));
    expect(await imported(path)).toMatchObject({ written: 4, skipped: 0 });
  });

  it('believes no checkpoint that cannot be one of the file', { timeout: 180_000 }, async () => {
    const path = await file('prepared.jsonl', lines(numbered(0, 3)));
    await imported(path);
    const { _meta: meta } = (await server.request('GET', '/prepared/_mapping')).body.prepared.mappings;
    const [[key, good]] = Object.entries<any>(meta.sparrow_import) as [[string, any]];
    const none = createHash('sha256').update('').digest('base64url');
    const prepare = async (sparrow_import: unknown) => {
      const { status } = await server.request('PUT', '/prepared/_mapping', { _meta: { sparrow_import } });
      expect(status).toBe(200);
    };
    await prepare({ [key]: good });
    expect(await imported(path)).toMatchObject({ written: 0, skipped: 3 });
    const bad = [
      { ...good, head: none, headBytes: 0 },
      { ...good, headBytes: -1 },
      { ...good, headBytes: 1e15 },
      { ...good, headBytes: 'x' },
      { ...good, records: 1e9 },
      { ...good, records: 1.5 },
      { ...good, records: -1 },
      { ...good, records: '3' },
      { ...good, size: 1e15 },
      { ...good, size: 0 },
      { ...good, tail: 7 },
      { ...good, done: 'yes' },
      { ...good, options: undefined },
      { ...good, tail: undefined },
      { ...good, file: '/etc/hostname' },
      ...['text', 7, null, []],
    ];
    for (const checkpoint of bad) {
      await prepare({ [key]: checkpoint });
      expect(await imported(path), JSON.stringify(checkpoint)).toMatchObject({ written: 3, skipped: 0 });
    }
    for (const all of ['text', 7, [good]]) {
      await prepare(all);
      expect(await imported(path), JSON.stringify(all)).toMatchObject({ written: 3, skipped: 0 });
    }
  });

  it('needs no more than the right to write', async () => {
    const made = await server.request('POST', '/_security/api_key', {
      name: 'feed',
      role_descriptors: { r: { indices: [{ names: ['fed'], privileges: ['write', 'auto_configure'] }] } },
    });
    const path = await file('fed.jsonl', lines(numbered(0, 3)));
    const args = ['import', path, '--url', server.url, '--key', made.body.encoded as string];
    for (const round of [1, 2]) expect(await sparrow(args), String(round)).toMatchObject({ code: 0, stderr: '' });
    await server.request('POST', '/fed/_refresh');
    expect(await count('fed')).toBe(3);
  });
});

it('leaves documents alone where the key may only add some', async () => {
  await server.request('PUT', '/added');
  const made = await server.request('POST', '/_security/api_key', {
    name: 'adds',
    role_descriptors: { r: { indices: [{ names: ['added'], privileges: ['create_doc'] }] } },
  });
  const path = await file('added.jsonl', lines(numbered(0, 3)));
  const args = ['import', path, '--url', server.url, '--key', made.body.encoded as string];
  const first = await sparrow([...args, '--json']);
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(JSON.parse(first.stdout)).toMatchObject([{ written: 3, rejected: 0, skipped: 0 }]);
  await appendFile(path, `broken\n${lines(numbered(3, 5))}`);
  const second = await sparrow(args);
  expect([second.code, second.stdout]).toEqual([
    1,
    expect.stringMatching(/: 2 documents in .*, 1 rejected, 3 were there already\n$/),
  ]);
  // The second try, which only adds, does not say again what the first one said.
  expect(second.stderr.match(/line 4: it is not JSON/g)).toHaveLength(1);
  await server.request('POST', '/added/_refresh');
  expect(await count('added')).toBe(5);
});

describe('--follow', () => {
  it('writes what is added to a file, until it is interrupted', async () => {
    const path = await file('log.jsonl', lines(numbered(0, 2)));
    const { process: child, ended } = begin(['import', path, '--follow', '--url', server.url, '--data', server.data]);
    const patience = { timeout: 20_000, interval: 100 };
    const written = async () => {
      await server.request('POST', '/log/_refresh');
      return (await server.request('GET', '/log/_count')).body.count as number;
    };
    await expect.poll(written, patience).toBe(2);
    // Half a line is none.
    await appendFile(path, '{"n":2}\n{"n"');
    await expect.poll(written, patience).toBe(3);
    await appendFile(path, ':3}\n');
    await expect.poll(written, patience).toBe(4);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining('4 documents in [log]') as string });
    await appendFile(path, lines(numbered(4, 6)));
    expect(await imported(path)).toMatchObject({ written: 2, skipped: 4 });
    expect(await count('log')).toBe(6);
  });

  it('ends with a sentence when the file is replaced by a shorter one', async () => {
    const path = await file('rotated.jsonl', lines(numbered(0, 3)));
    const { ended } = begin(['import', path, '--follow', '--url', server.url, '--data', server.data]);
    await expect
      .poll(async () => (await server.request('GET', '/rotated/_count')).body.count, { timeout: 20_000 })
      .toBe(3);
    await truncate(path, 5);
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('it was replaced') as string });
  });
});
