// The commands against what is no Sparrow server, or stands before one, or means harm.
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { type Ended, sparrow } from './support.js';

let folder: string;
let server: Server | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-strange-'));
});
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Starts a server that answers as it is told; gives its address. */
async function fake(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

/** Imports three documents into a server that answers `_bulk` with this, and everything else as it should. */
async function importInto(
  status: number,
  type: string,
  body: string,
): Promise<Ended & { readonly checkpoints: string[] }> {
  const path = join(folder, 'three.jsonl');
  await writeFile(path, '{"n":1}\n{"n":2}\n{"n":3}\n');
  const checkpoints: string[] = [];
  const url = await fake((request, response) => {
    let sent = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (sent += chunk));
    request.on('end', () => {
      if (request.url?.includes('_bulk') === true) {
        response.writeHead(status, { 'content-type': type }).end(body);
        return;
      }
      if (sent.includes('sparrow_import')) checkpoints.push(sent);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"acknowledged":true}');
    });
  });
  return { ...(await sparrow(['import', path, '--url', url, '--key', 'YTpi'])), checkpoints };
}

describe('an import', () => {
  const item = '{"index":{"status":201}}';
  it.each([
    [
      'an HTML page with 502',
      502,
      'text/html',
      '<html>Bad gateway</html>',
      'status 502 and [<html>Bad gateway</html>]',
    ],
    ['a text with 500', 500, 'text/plain', 'it broke\nhere', 'status 500 and [it broke␊here]'],
    ['an HTML page with 200', 200, 'text/html', '<html>Sign in</html>', 'status 200 and [<html>Sign in</html>]'],
    ['an empty object', 200, 'application/json', '{}', 'became of the 3 documents that were sent: {}'],
    ['an empty object with 502', 502, 'application/json', '{}', 'status 502'],
    ['nothing', 200, 'application/json', '', 'status 200 and []'],
    ['null', 200, 'application/json', 'null', 'status 200 and [null]'],
    [
      'too few items',
      200,
      'application/json',
      `{"errors":false,"items":[${item},${item}]}`,
      'became of the 3 documents',
    ],
    ['items of no status', 200, 'application/json', `{"items":[${item},${item},{"index":{}}]}`, 'became of the 3'],
    ['items that are none', 200, 'application/json', `{"items":[${item},null,7]}`, 'became of the 3 documents'],
    ['steering', 200, 'application/json', '{"\u202e\u009b2J":1}', 'were sent: {"\ufffd\ufffd2J":1}'],
  ])('is no success where the answer is %s', async (_, status, type, body, sentence) => {
    const { code, stdout, stderr, checkpoints } = await importInto(status, type, body);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(sentence);
    expect(stderr).toMatch(/^sparrow: .*\n$/);
    for (const checkpoint of checkpoints) expect(checkpoint).toContain('"records":0,"done":false');
  });

  it('counts as refused what has the status of a refusal, whatever else the answer says', async () => {
    const body = `{"errors":false,"items":[${item},{"index":{"status":400}},${item}]}`;
    const { code, stdout, stderr } = await importInto(200, 'application/json', body);
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 2: status 400')]);
    expect(stdout).toContain('2 documents in [three]');
    expect(stdout).toContain('1 rejected');
  });
});

describe('a key and a password', () => {
  const nowhere = 'http://127.0.0.1:1';

  it('are not shown where they are malformed', async () => {
    const file = join(folder, 'two-lines.key');
    await writeFile(file, 'first\nSECRET123\n');
    const data = join(folder, 'data');
    await mkdir(data, { recursive: true });
    await writeFile(join(data, 'owner.key'), 'first\nSECRET123\n');
    const told = [
      await sparrow(['status', '--url', nowhere, '--key', 'first\nSECRET123']),
      await sparrow(['status', '--url', nowhere, '--key', 'SECRET123\u20ac']),
      await sparrow(['status', '--url', nowhere], { SPARROW_API_KEY: 'SECRET123 and more' }),
      await sparrow(['status', '--url', nowhere], { SPARROW_API_KEY_FILE: file }),
      await sparrow(['status', '--url', nowhere, '--data', data]),
    ];
    for (const { code, stdout, stderr } of told) {
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^sparrow: the key of .* is not a key: a key is one word of ASCII characters\n$/);
      expect(stderr).not.toContain('SECRET123');
    }
    for (const url of ['http://user:PASSW ORD@[bad', 'user:PASSW@ORD@[bad', 'https://PASSW\nORD@:x']) {
      const { code, stderr } = await sparrow(['status', '--url', url]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: \[…@.*\] is not an address of a server\n$/)]);
      expect(stderr).not.toMatch(/PASSW|ORD/);
    }
  });
});

describe('a server that means harm', () => {
  const commands = [
    ['status'],
    ['models', 'list'],
    ['tasks'],
    ['key', 'list'],
    ['search', 'x', '--index', 'i'],
    ['snapshot', 'list'],
  ];

  it.each([
    'null',
    '{',
    '[]',
    '7',
    '"text"',
    '<html>',
    '{"status":"ready","nodes":7,"hits":7,"api_keys":7,"trained_model_configs":null}',
    '{"error":null}',
    '{"error":"text"}',
  ])('is told in one sentence, without a stack: %s', async (body) => {
    const url = await fake((_, response) => response.end(body));
    for (const command of commands) {
      const { stderr } = await sparrow([...command, '--url', url, '--key', 'YTpi']);
      expect(stderr, command.join(' ')).toMatch(/^(?:sparrow: .*\n)?$/);
      if (command[0] === 'status')
        expect(stderr).toContain('is not a Sparrow server, or not the version of this command');
    }
  });

  it('is not read without end, packed or not', async () => {
    const piece = Buffer.alloc(1 << 20, ' ');
    const packed = gzipSync(Buffer.alloc(256 << 20, ' '));
    for (const isPacked of [false, true]) {
      const url = await fake((_, response) => {
        if (isPacked) {
          response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed);
          return;
        }
        const more = (): void => {
          while (!response.destroyed && response.write(piece));
        };
        response.on('drain', more);
        more();
      });
      const { code, stderr } = await sparrow(['tasks', '--url', url, '--key', 'YTpi']);
      expect([code, stderr]).toEqual([1, `sparrow: the server at ${url} answers with more than 64 MB\n`]);
      server?.closeAllConnections();
      server?.close();
    }
  });

  it('is not waited for without end, silent or in the middle of an answer', async () => {
    let requests = 0;
    const url = await fake((_, response) => {
      if ((requests += 1) === 2) response.write('{');
    });
    const ask = (): Promise<Ended> => sparrow(['tasks', '--url', url, '--key', 'YTpi']);
    for (const { code, stderr } of await Promise.all([ask(), ask()])) {
      expect([code, stderr]).toEqual([
        1,
        `sparrow: the server at ${url} gave no answer within 30 seconds: it may be busy, and may still carry out the request\n`,
      ]);
    }
  }, 90_000);
});
