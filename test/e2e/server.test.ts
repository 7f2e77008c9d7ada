// What only a real socket and a real process show.
import { spawn, spawnSync } from 'node:child_process';
import { createServer, request as httpRequest } from 'node:http';
import { mkdtemp, readFile, stat } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false', '--max-body-bytes', '1000000'] });
});

afterAll(async () => {
  await server.stop();
});

describe('over a socket', () => {
  it('GET with a body is read', async () => {
    await server.request('PUT', '/books/_doc/1?refresh=true', { title: 'one' });
    await server.request('PUT', '/books/_doc/2?refresh=true', { title: 'two' });
    const found = await server.request('GET', '/books/_search', { query: { match: { title: 'two' } } });
    expect(found.body.hits.hits.map((hit: { _id: string }) => hit._id)).toEqual(['2']);
  });

  it.each(['a/b', 'a%b', 'ü b', 'a+b', 'a.b', '?#'])('the id %s comes back as it went in', async (id) => {
    const written = await server.request('PUT', `/books/_doc/${encodeURIComponent(id)}`, { title: 'odd' });
    expect(written.status, written.text).toBe(201);
    expect(written.body._id).toBe(id);
    expect((await server.request('GET', String(written.headers['location']))).body).toMatchObject({
      _id: id,
      found: true,
    });
  });

  it('a second server over the same data directory does not start, and says what can be done', () => {
    const args = [CLI, '--port', '0', '--data', server.data];
    const second = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
    expect(second.status, second.stderr).toBe(1);
    expect(second.stderr).toContain(
      `data directory ${server.data} is in use by another process: is another server running? Pass --data to use another one.`,
    );
    expect(second.stderr).not.toContain('"msg":"ready"');
  });

  it('a zipped body is unzipped, up to the limit', async () => {
    const send = (text: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(
          `${server.url}/zipped/_doc/1`,
          {
            method: 'PUT',
            headers: {
              authorization: `ApiKey ${server.apiKey}`,
              'content-type': 'application/json',
              'content-encoding': 'gzip',
            },
          },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        request.on('error', reject);
        request.end(gzipSync(text));
      });
    expect(await send('{"title":"zipped"}')).toBe(201);
    expect(await send(`{"title":"${'x'.repeat(2_000_000)}"}`)).toBe(413);
  });

  it('a body over the limit is a 413, and the server goes on', async () => {
    const response = await server.request('PUT', '/books/_doc/big', { title: 'x'.repeat(1_000_001) });
    expect(response.status).toBe(413);
    expect((await server.request('GET', '/books/_doc/big')).status).toBe(404);
  });

  it('callers that go away do no harm', async () => {
    await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<void>((resolve) => {
            const request = httpRequest(
              `${server.url}/books/_search`,
              {
                method: 'POST',
                headers: { authorization: `ApiKey ${server.apiKey}`, 'content-type': 'application/json' },
              },
              () => undefined,
            );
            request.on('error', () => undefined);
            request.on('close', resolve);
            request.end('{}');
            setTimeout(() => request.destroy(), 2);
          }),
      ),
    );
    expect((await server.request('GET', '/books/_search')).status).toBe(200);
  });

  it('refuses what has no key and answers what needs none', async () => {
    expect((await server.request('GET', '/books/_search', undefined, { apiKey: null })).status).toBe(401);
    expect((await server.request('GET', '/_health', undefined, { apiKey: null })).body).toEqual({ status: 'ready' });
    expect((await server.request('GET', '/_console', undefined, { apiKey: null })).text).toContain('Sparrow console');
  });

  it('shows the memory of the process', async () => {
    const { body } = await server.request('GET', '/_nodes/stats');
    const [node] = Object.values(body.nodes) as { process: { mem: { resident_in_bytes: number } } }[];
    expect(node?.process.mem.resident_in_bytes).toBeGreaterThan(10_000_000);
  });
});

describe('the process', () => {
  it('leaves the owner key to this user alone, and says where to who reads its output later', async () => {
    const first = await startServer({ args: ['--deploy-at-start', 'false'] });
    // Said right after the event that it is ready.
    await vi.waitFor(() => {
      expect(first.output()).toContain(`the owner key is in ${join(first.data, 'owner.key')}`);
    }, 20_000);
    expect(first.output()).not.toContain(first.apiKey);
    expect((await stat(join(first.data, 'owner.key'))).mode & 0o777).toBe(0o600);
    expect(await first.stop()).toBe(0);
    const second = await startServer({ data: first.data, args: ['--deploy-at-start', 'false'] });
    expect(second.output()).not.toContain('owner key');
    expect((await second.request('GET', '/')).status).toBe(200);
    await second.stop();
  });

  it('shows the owner key on a terminal, once', async (context) => {
    // `script` of util-linux gives a program a terminal.
    if (spawnSync('script', ['--version']).status !== 0) context.skip('there is no `script` here');
    const data = await mkdtemp(join(tmpdir(), 'sparrow-terminal-'));
    const command = `"${process.execPath}" "${CLI}" --port 0 --deploy-at-start false --data "${data}"`;
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let shown = '';
    terminal.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()));
    const ended = new Promise((resolve) => terminal.on('exit', resolve));
    await vi.waitFor(() => {
      expect(shown).toContain('ready on');
    }, 30_000);
    expect(shown).toContain(`shown this once): ${(await readFile(join(data, 'owner.key'), 'utf8')).trim()}`);
    // Ctrl-C, as a terminal sends it.
    terminal.stdin.write('\u0003');
    await ended;
  });

  it('takes the owner key from the environment', async () => {
    const apiKey = Buffer.from('me:5up4mX9rQ2vT7yB1nK8wLz').toString('base64');
    const own = await startServer({ args: ['--deploy-at-start', 'false'], env: { SPARROW_API_KEY: apiKey } });
    expect(own.output()).not.toContain(apiKey);
    expect((await own.request('GET', '/')).status).toBe(200);
    await own.stop();
  });

  it('writes into its logs what clients send without what a terminal would obey or nobody would see', async () => {
    const auditLog = join(await mkdtemp(join(tmpdir(), 'sparrow-audit-')), 'log');
    const args = ['--deploy-at-start', 'false', '--log-level', 'debug', '--audit-log', auditLog];
    const one = await startServer({ args });
    const strange = 'a\u009b31m\u0085';
    const apiKey = Buffer.from(`${strange}\u202e:secret`).toString('base64');
    for (const key of [one.apiKey, apiKey]) {
      const path = `/${encodeURIComponent(`${strange}\u202e\u2066`)}/_doc/1`;
      const options = { apiKey: key, headers: { 'x-opaque-id': strange } };
      expect((await one.request('PUT', path, { a: 1 }, options)).status).toBeGreaterThanOrEqual(400);
    }
    await one.stop();
    const [log, audit] = [one.output(), await readFile(auditLog, 'utf8')];
    for (const text of [log, audit]) {
      expect(text).not.toMatch(/[\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/u);
      expect(text).toContain('a\\u009b31m\\u0085');
    }
  });

  it('finishes what is under way before it ends', async () => {
    const own = await startServer({ args: ['--deploy-at-start', 'false'] });
    await own.request('PUT', '/from');
    await own.request('POST', '/from/_bulk?refresh=true', '{"index":{}}\n{"n":1}\n'.repeat(200));
    // Half a second of pauses: it is under way when the server is told to stop.
    const pace = 'requests_per_second=200&refresh=true';
    const source = { index: 'from', size: 20 };
    const copying = own.request('POST', `/_reindex?${pace}`, { source, dest: { index: 'late' } });
    await expect.poll(async () => (await own.request('GET', '/_cat/tasks')).text).toContain('data/write/reindex');
    const lines = '{"index":{}}\n{"n":1}\n'.repeat(2000);
    const writing = own.request('POST', '/late-too/_bulk', lines);
    const [code, copied, written] = await Promise.all([own.stop(), copying, writing]);
    expect([code, copied.status, written.status]).toEqual([0, 200, 200]);
    expect([copied.body.failures, written.body.errors]).toEqual([[], false]);
    const again = await startServer({ data: own.data, args: ['--deploy-at-start', 'false'] });
    await again.request('POST', '/_refresh');
    expect((await again.request('GET', '/late-too/_count')).body.count).toBe(2000);
    // A job is cancelled, and says how far it came.
    expect((await again.request('GET', '/late/_count')).body.count).toBe(copied.body.created);
    await again.stop();
  });

  it.each([
    [['--prot', '1'], 'unknown option --prot'],
    [['--host', '0.0.0.0'], '--allow-remote'],
  ])('ends with a sentence for %j', (args, sentence) => {
    const { status, stderr } = spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8' });
    expect(status).toBe(2);
    expect(stderr).toContain(sentence);
  });

  it('says so when the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const { status, stderr } = spawnSync(process.execPath, [CLI, '--port', String(port)], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    other.close();
    expect(status).toBe(1);
    expect(stderr).toContain('another server');
  });

  it('says so when another process owns the data directory', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, '--port', '0', '--data', server.data], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/lock|in use|another process/i);
    // Until the directory is this process's, nothing is said that looks like success.
    expect(stdout).not.toContain('"ready"');
    expect(stdout + stderr).toContain('"msg":"listening, opening the data directory"');
  });
});
