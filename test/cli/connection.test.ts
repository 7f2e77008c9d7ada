// How commands find a server and a key, and what they say where there is none.
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { issue } from '../support/certificates.js';
import { serve } from './served.js';
import { sparrow } from './support.js';

const { server, folder } = await serve();

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
      expect.stringMatching(/^sparrow: the server at .* requires a key: .*--key.*\n$/),
    ]);
    const file = join(folder, 'wrong.key');
    await writeFile(file, 'YTpi\n');
    await writeFile(join(folder, 'owner.key'), 'YTpi\n');
    for (const [args, env, from] of [
      [['--key', 'YTpi'], {}, '--key'],
      [[], { SPARROW_API_KEY: 'YTpi' }, 'SPARROW_API_KEY'],
      [[], { SPARROW_API_KEY_FILE: file }, `${file} (SPARROW_API_KEY_FILE)`],
      [['--data', folder], {}, join(folder, 'owner.key')],
    ] as const) {
      const wrong = await sparrow(['status', '--url', server.url, ...args], env);
      expect([wrong.code, wrong.stderr]).toEqual([
        1,
        `sparrow: the server at ${server.url} does not accept the key from ${from}: it may belong to another server, or have expired or been revoked; give a valid key with --key or SPARROW_API_KEY, or name the server's data directory with --data\n`,
      ]);
    }
    // Where a key lies that cannot be read, it is the one that was meant.
    await mkdir(join(folder, 'closed', 'owner.key'), { recursive: true });
    const closed = await sparrow(['status', '--url', server.url, '--data', join(folder, 'closed')]);
    expect(closed.stderr).toContain(`(${join(folder, 'closed', 'owner.key')} cannot be read: it is a folder)`);
    const before = await sparrow(['--key', 'YTpi', 'status']);
    expect([before.code, before.stderr]).toEqual([
      2,
      'sparrow: options such as --key follow the command: sparrow status --key …\n',
    ]);
    const nonsense = await sparrow(['status', '--url', 'http://']);
    expect([nonsense.code, nonsense.stderr]).toEqual([1, 'sparrow: [http://] is not an address of a server\n']);
  });
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
