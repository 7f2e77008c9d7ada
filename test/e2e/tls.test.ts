// TLS: what is offered, what is refused, certificates of clients, and certificates that are replaced while the server runs.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, rename, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Socket, connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Issued, issue } from '../support/certificates.js';
import { type RunningServer, startServer } from '../support/server.js';
import { byTier, isFirstTier } from '../tiers.mjs';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));
const authority = issue('the test’s authority', { ca: true });

let folder: string;
const file = (name: string): string => join(folder, name);

/** Puts a certificate and its key into files, each replaced at once. */
async function put(name: string, { cert, key }: Pick<Issued, 'cert' | 'key'>): Promise<string[]> {
  for (const [path, text] of [
    [file(`${name}.crt`), cert],
    [file(`${name}.key`), key],
  ] as const) {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  }
  return ['--tls-cert', file(`${name}.crt`), '--tls-key', file(`${name}.key`)];
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Common name of the server's certificate. */
  readonly server: string;
}

function get(server: RunningServer, path: string, options: ConnectionOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      server.url + path,
      { ca: authority.cert, agent: false, headers: { authorization: `ApiKey ${server.apiKey}` }, ...options },
      (response) => {
        const name = (
          response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }
        ).getPeerCertificate().subject.CN;
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, server: name });
        });
      },
    );
    request.on('error', reject);
    request.end();
  });
}

/** Ends a start that must not succeed, with the code of options that cannot be used; what it said. */
function refused(args: readonly string[]): string {
  const { status, stderr } = spawnSync(
    process.execPath,
    [CLI, '--port', '0', '--data', join(folder, 'never'), ...args],
    {
      encoding: 'utf8',
      timeout: 30_000,
    },
  );
  expect(status).toBe(2);
  return stderr;
}

/** Open files and connections of a server's process. */
function descriptors(server: RunningServer): number {
  return readdirSync(`/proc/${String(server.process.pid)}/fd`).length;
}

/** A connection without TLS that sends some bytes at once, and of others one every 50 ms. */
function connection(server: RunningServer, first: readonly number[], slowly: readonly number[] = []): Socket {
  const socket = connectPlain(Number(new URL(server.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(Buffer.from(first));
  let at = first.length;
  const timer = setInterval(() => {
    if (at < slowly.length) socket.write(Buffer.from(slowly.slice(at, (at += 1))));
  }, 50);
  socket.on('close', () => {
    clearInterval(timer);
  });
  return socket;
}

async function until(happened: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (let tries = 0; tries < ms / 100 && !(await happened()); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(await happened()).toBe(true);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-tls-'));
});

describe('a server with a certificate', () => {
  let server: RunningServer;
  beforeAll(async () => {
    const args = await put('own', issue('first', { issuer: authority }));
    // With TLS an address that other machines reach is no reason to refuse.
    server = await startServer({ args: [...args, '--host', '0.0.0.0', '--deploy-at-start', 'false'] });
    Object.assign(server, { url: server.url.replace('0.0.0.0', '127.0.0.1') });
  });
  afterAll(async () => {
    await server.stop();
  });

  it('answers over HTTPS, and tells browsers to stay with it', async () => {
    expect(server.url).toMatch(/^https:/);
    const answer = await get(server, '/');
    expect(answer.status).toBe(200);
    expect(answer.server).toBe('first');
    expect(answer.headers['strict-transport-security']).toBe('max-age=31536000');
    const page = await get(server, '/_console');
    expect(page.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': 'max-age=31536000',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'") as string,
    });
  });

  it('speaks TLS 1.2 and 1.3 with ciphers that keep traffic secret, and nothing older or weaker', async () => {
    const talk = (options: ConnectionOptions): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(
          { port: Number(new URL(server.url).port), host: '127.0.0.1', ca: authority.cert, ...options },
          () => {
            resolve(`${String(socket.getProtocol())} ${socket.getCipher().name}`);
            socket.destroy();
          },
        );
        socket.on('error', (error: NodeJS.ErrnoException) => {
          resolve(String(error.code));
        });
      });
    expect(await talk({})).toMatch(/^TLSv1\.3 TLS_/);
    expect(await talk({ maxVersion: 'TLSv1.2' })).toMatch(/^TLSv1\.2 ECDHE-ECDSA-.*(?:GCM|POLY1305)/);
    expect(await talk({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' })).not.toMatch(/^TLSv/);
    expect(await talk({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' })).not.toMatch(/^TLSv/);
  });

  it('tells a client that speaks plain HTTP what to do', async () => {
    const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const request = httpRequest(server.url.replace('https', 'http'), (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, text });
        });
      });
      request.on('error', reject);
      request.end();
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('this port speaks HTTPS only');
    expect((await get(server, '/_live')).status).toBe(200);
  });

  it('takes a new pair without a restart, and keeps the old one when the new one cannot be used', async () => {
    await writeFile(file('own.key'), issue('stranger').key);
    await until(() =>
      server.output().includes('the new TLS certificate cannot be used; the previous one stays in use'),
    );
    expect(server.output()).toContain('is not that of the first certificate');
    expect((await get(server, '/_live')).server).toBe('first');
    await put('own', issue('second', { issuer: authority }));
    await until(async () => (await get(server, '/_live')).server === 'second');
    expect(server.output()).toContain('TLS certificate replaced');
  });

  it.runIf(process.platform === 'linux')(
    'serves others while hundreds of handshakes do not end, and is free of them after ten seconds',
    async () => {
      const before = descriptors(server);
      const each = byTier(30, 150);
      const hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
      const beginnings: Readonly<Record<string, readonly number[]>> = {
        nothing: [],
        'a byte': hello.slice(0, 1),
        'half a hello': hello,
        'a byte at a time': [...hello, ...Array.from({ length: 400 }, () => 7)],
      };
      const open = Object.entries(beginnings).flatMap(([name, bytes]) =>
        Array.from({ length: each }, () => connection(server, name === 'a byte at a time' ? [] : bytes, bytes)),
      );
      // Connections are accepted in the order in which they come, so that the next one is served behind all of these.
      await until(() => open.every((socket) => !socket.connecting), 30_000);
      expect((await get(server, '/_live')).status).toBe(200);
      const all = Array.from({ length: byTier(20, 200) }, () => get(server, '/_live'));
      for (const answer of await Promise.all(all)) expect(answer.status).toBe(200);
      if (isFirstTier) for (const socket of open) socket.destroy();
      await until(() => descriptors(server) <= before + 5, 30_000);
      expect((await get(server, '/_live')).status).toBe(200);
    },
    60_000,
  );

  it.runIf(process.platform === 'linux')('ends at once what is no handshake', async () => {
    const before = descriptors(server);
    const garbage = [22, 3, 1, 0, 200, ...Array.from({ length: 200 }, () => 9)];
    const plain = [...Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')];
    const sockets = [garbage, plain].flatMap((bytes) => Array.from({ length: 40 }, () => connection(server, bytes)));
    await until(() => sockets.every((socket) => socket.destroyed));
    await until(() => descriptors(server) <= before + 5);
    expect((await get(server, '/_live')).status).toBe(200);
  });
});

describe('certificates of clients', () => {
  const client = issue('a client', { issuer: authority });
  const stranger = issue('a stranger');

  it('are required where that is asked for', async () => {
    await writeFile(file('ca.crt'), authority.cert);
    const args = await put('required', issue('required', { issuer: authority }));
    const server = await startServer({
      args: [...args, '--tls-client-ca', file('ca.crt'), '--deploy-at-start', 'false'],
    });
    await expect(get(server, '/_live')).rejects.toThrow();
    await expect(get(server, '/_live', { cert: stranger.cert, key: stranger.key })).rejects.toThrow();
    expect((await get(server, '/', { cert: client.cert, key: client.key })).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  it('may be left out where they are optional, but must be good ones', async () => {
    const args = await put('optional', issue('optional', { issuer: authority }));
    const server = await startServer({
      args: [...args, '--tls-client-ca', file('ca.crt'), '--tls-client-auth', 'optional', '--deploy-at-start', 'false'],
    });
    expect((await get(server, '/_live')).status).toBe(200);
    expect((await get(server, '/_live', { cert: client.cert, key: client.key })).status).toBe(200);
    const bad = await get(server, '/_live', { cert: stranger.cert, key: stranger.key });
    expect([bad.status, bad.text]).toEqual([401, expect.stringContaining('certificate is not accepted')]);
    expect(await server.stop()).toBe(0);
  });
});

describe('files that cannot be used', () => {
  it('end the start with a sentence that names them', async () => {
    const [, cert = '', , key = ''] = await put('pair', issue('pair'));
    await put('other', issue('other'));
    await writeFile(file('empty'), '');
    expect(refused(['--tls-cert', cert])).toBe('sparrow: --tls-cert needs --tls-key\n');
    expect(refused(['--tls-key', key])).toBe('sparrow: --tls-key needs --tls-cert\n');
    expect(refused(['--tls-client-ca', cert])).toBe('sparrow: --tls-client-ca needs --tls-cert and --tls-key\n');
    expect(refused(['--tls-cert', file('nothing'), '--tls-key', key])).toContain(
      `cannot read the certificate ${file('nothing')}: there is nothing of that name`,
    );
    expect(refused(['--tls-cert', file('empty'), '--tls-key', key])).toContain(
      `${file('empty')} holds no certificate in PEM`,
    );
    expect(refused(['--tls-cert', cert, '--tls-key', file('empty')])).toContain('it is not a private key in PEM');
    expect(refused(['--tls-cert', cert, '--tls-key', file('other.key')])).toContain(
      `the private key ${file('other.key')} is not that of the first certificate in ${cert}`,
    );
    expect(refused(['--host', '0.0.0.0'])).toContain('Pass --tls-cert and --tls-key');
  });
});
