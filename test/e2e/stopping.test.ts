// How the process ends under load, and how it refuses to start on what it cannot read.
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { startServer } from '../support/server.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));
const ARGS = ['--deploy-at-start', 'false'];

/**
 * What became of a request: a whole answer (and whether it ended its connection), none because the server took no more
 * connections or said that it is stopping, or cut off.
 */
type Outcome = 'whole' | 'last' | 'refused' | 'cut';

function ask(url: string, apiKey: string, agent: Agent, path: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const request = httpRequest(url + path, { agent, headers: { authorization: `ApiKey ${apiKey}` } }, (response) => {
      response.on('error', () => {
        resolve('cut');
      });
      response.on('end', () => {
        if (response.complete && response.statusCode === 503) resolve('refused');
        else if (!response.complete || response.statusCode !== 200) resolve('cut');
        else resolve(response.headers.connection === 'close' ? 'last' : 'whole');
      });
      response.resume();
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'cut');
    });
    request.end();
  });
}

/** A server that waits for what is not there does so for longer than a test may take. */
const PATIENT = [...ARGS, '--shutdown-seconds', '600'];

describe('SIGTERM', () => {
  it('under load of 32 kept-alive clients ends the process soon, and cuts no request off', async () => {
    const server = await startServer({ args: PATIENT });
    await server.request('PUT', '/books/_doc/1?refresh=true', { title: 'one' });
    const counts: Record<Outcome, number> = { whole: 0, last: 0, refused: 0, cut: 0 };
    const client = async (): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const outcome = await ask(server.url, server.apiKey, agent, '/books/_search?q=title:one');
        counts[outcome] += 1;
        // Told that the connection ends: a client that goes on meets a closed port.
        if (outcome !== 'whole') break;
      }
      agent.destroy();
    };
    const clients = Array.from({ length: 32 }, client);
    await new Promise((resolve) => setTimeout(resolve, 700));
    await expect.poll(() => counts.whole).toBeGreaterThan(100);
    // Should this process have stood still, what has come is read first.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await server.stop()).toBe(0);
    await Promise.all(clients);
    expect(counts.whole).toBeGreaterThan(100);
    expect(counts.cut).toBe(0);
    // Nearly all are told; one that was slow to go on finds its connection closed before it has sent anything.
    expect(counts.last + counts.refused).toBe(32);
    expect(counts.last).toBeGreaterThan(16);
  });

  it('while an answer is awaited, is alive but not ready, and says to new clients that it is stopping', async () => {
    const server = await startServer({ args: ARGS });
    await server.request('PUT', '/slow', {
      settings: { refresh_interval: '15s' },
    });
    await server.request('PUT', '/slow/_doc/0?refresh=true', {});
    const waiting = server.request('PUT', '/slow/_doc/1?refresh=wait_for', { title: 'one' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const stopped = server.stop();
    await new Promise((resolve) => setTimeout(resolve, 700));
    const ask = (path: string): ReturnType<typeof server.request> =>
      server.request('GET', path, undefined, { headers: { connection: 'close' } });
    expect([(await ask('/_live')).status, (await ask('/_live')).body]).toEqual([200, { status: 'live' }]);
    for (const path of ['/_ready', '/_health']) {
      const answer = await ask(path);
      expect([answer.status, answer.body]).toEqual([503, { status: 'stopping' }]);
    }
    expect((await ask('/metrics')).text).toContain('\nsparrow_ready 0\n');
    const refused = await ask('/slow/_search');
    expect(refused.status).toBe(503);
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.body.error.type).toBe('node_closed_exception');
    expect((await waiting).status).toBe(201);
    expect(await stopped).toBe(0);
    const again = await startServer({ args: ARGS, data: server.data });
    expect((await again.request('GET', '/slow/_doc/1')).body.found).toBe(true);
    await again.stop();
  });

  it('does not wait for connections that nobody uses', async () => {
    const server = await startServer({ args: PATIENT });
    const { hostname, port } = new URL(server.url);
    const sockets = await Promise.all(
      Array.from(
        { length: 5 },
        () =>
          new Promise<ReturnType<typeof connect>>((resolve) => {
            const socket = connect(Number(port), hostname, () => {
              resolve(socket);
            });
            socket.on('error', () => undefined);
          }),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await server.stop()).toBe(0);
    for (const socket of sockets) socket.destroy();
  });
});

describe('the data directory', () => {
  it('is for this user alone, with everything in it', async () => {
    const data = join(await mkdtemp(join(tmpdir(), 'sparrow-private-')), 'made', 'data');
    const server = await startServer({ data, args: ARGS });
    await server.request('PUT', '/books/_doc/1?refresh=true', { title: 'one' });
    expect(await server.stop()).toBe(0);
    for (const name of ['.', ...(await readdir(data, { recursive: true }))]) {
      expect([name, (await stat(join(data, name))).mode & 0o077]).toEqual([name, 0]);
    }
  });

  it('is closed to others when it was open to them, and the log says so', async () => {
    const data = await mkdtemp(join(tmpdir(), 'sparrow-open-'));
    const first = await startServer({ data, args: ARGS });
    await first.stop();
    await chmod(data, 0o755);
    await chmod(join(data, 'owner.key'), 0o644);
    const second = await startServer({ data, args: ARGS });
    expect((await stat(data)).mode & 0o777).toBe(0o700);
    expect((await stat(join(data, 'owner.key'))).mode & 0o777).toBe(0o600);
    expect(second.output()).toContain('other users could read this file or folder; now only its owner can');
    expect(second.output()).toContain('"rights":"0755"');
    await second.stop();
  });
});

describe('a file that cannot be read', () => {
  const files = ['identity.json', 'security/api_keys.json', 'store/node.json', 'store/pipelines.json'];
  it.each(
    files.flatMap((file) => [
      [file, '{"format":1', 'is damaged'],
      [file, '[]', 'is damaged'],
      [file, '{"format":9,"checksum":0,"value":{}}', 'has format version 9, this version reads up to 1'],
    ]),
  )('%s with %s ends the start with one sentence, and stays as it is', async (file, text, problem) => {
    const data = await mkdtemp(join(tmpdir(), 'sparrow-damaged-'));
    const first = await startServer({ data, args: ARGS });
    await first.request('PUT', '/_ingest/pipeline/p', { processors: [] });
    await first.stop();
    const path = join(data, file);
    expect((await stat(path)).isFile()).toBe(true);
    await writeFile(path, text);
    const { status, stderr } = spawnSync(process.execPath, [CLI, '--port', '0', '--data', data, ...ARGS], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(status).toBe(1);
    const said = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/^sparrow: /);
    expect(said[0]).toContain(path);
    expect(said[0]).toContain(problem);
    expect(said[0]).toContain('Nothing was changed.');
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  it.skipIf(process.platform === 'win32').each(['lock', ...files])(
    'a pipe in place of %s ends the start with one sentence, and nobody waits for it',
    async (file) => {
      const data = await mkdtemp(join(tmpdir(), 'sparrow-pipe-'));
      const first = await startServer({ data, args: ARGS });
      await first.request('PUT', '/_ingest/pipeline/p', { processors: [] });
      await first.stop();
      const path = join(data, file);
      await rm(path);
      expect(spawnSync('mkfifo', [path]).status).toBe(0);
      const { status, signal, stderr } = spawnSync(process.execPath, [CLI, '--port', '0', '--data', data, ...ARGS], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      expect([status, signal], stderr).toEqual([1, null]);
      const said = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
      expect(said).toEqual([expect.stringMatching(/^sparrow: .*not a regular file/u)]);
      expect(said[0]).toContain(path);
    },
  );
});
