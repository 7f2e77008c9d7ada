// The start over a cluster that is not there, or not what it should be. What answers here is no cluster, which is the point.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterEach, describe, expect, it } from 'vitest';

import { issue } from '../support/certificates.js';
import { fakeNode } from '../support/cluster/fake.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

const started: { child?: ChildProcess; server?: Server }[] = [];

afterEach(() => {
  for (const { child, server } of started.splice(0)) {
    child?.kill('SIGKILL');
    server?.close();
    server?.closeAllConnections();
  }
});

/** Something that answers as `answer` says; its address. */
async function answering(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  started.push({ server });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An address that nothing listens on. */
async function nobody(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

interface Started {
  readonly data: string;
  readonly url: () => string | undefined;
  readonly output: () => string;
  readonly exited: Promise<number | null>;
  readonly child: ChildProcess;
}

async function start(cluster: string, ...args: string[]): Promise<Started> {
  const data = await mkdtemp(join(tmpdir(), 'sparrow-cluster-'));
  const all = ['--port', '0', '--data', data, '--deploy-at-start', 'false', '--cluster', cluster, ...args];
  const child = spawn(process.execPath, [CLI, ...all], { stdio: ['ignore', 'pipe', 'pipe'] });
  started.push({ child });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return {
    data,
    url: () => /"msg":"listening, opening the data directory","url":"([^"]+)"/.exec(output)?.[1],
    output: () => output,
    exited: new Promise((resolve) => child.on('exit', resolve)),
    child,
  };
}

/** Waits until something holds. */
async function until(what: () => boolean | Promise<boolean>, shown: () => string): Promise<void> {
  for (const end = Date.now() + 40_000; Date.now() < end;) {
    if (await what()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it did not come to that:\n${shown()}`);
}

describe('a start over a cluster', () => {
  it('says that nobody answers, asks again, is not ready meanwhile, and ends at once when it is told to', async () => {
    const server = await start(await nobody());
    await until(() => server.output().split('the cluster cannot be used yet').length > 2, server.output);
    expect(server.output()).toContain('no node of the cluster answers');
    expect(server.output()).toContain('ECONNREFUSED');
    const url = server.url() ?? '';
    expect((await fetch(`${url}/_health`)).status).toBe(503);
    expect((await fetch(`${url}/a/_search`)).status).toBe(503);
    server.child.kill('SIGTERM');
    await until(() => server.child.exitCode !== null || server.child.signalCode !== null, server.output);
  });

  it('says that HTML is no answer of a cluster', async () => {
    const url = await answering((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello</p>');
    });
    const server = await start(url);
    await until(() => server.output().includes('it answered with [text/html] and not with JSON'), server.output);
  });

  it('tells refused credentials apart, and sends those of the file', async () => {
    const seen: (string | undefined)[] = [];
    const url = await answering((request, response) => {
      seen.push(request.headers.authorization);
      const error = { type: 'security_exception', reason: 'no such user' };
      response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error, status: 401 }));
    });
    const file = join(await mkdtemp(join(tmpdir(), 'sparrow-credentials-')), 'credentials');
    await writeFile(file, 'user:pass\n');
    const server = await start(url, '--cluster-credentials', file);
    await until(() => server.output().includes("refused Sparrow's own credentials with status 401"), server.output);
    expect(seen[0]).toBe(`Basic ${Buffer.from('user:pass').toString('base64')}`);
    expect(server.output()).not.toContain('user:pass');
  });

  it('refuses a certificate of somebody else with its reason, and takes one that the authority of the file signed', async () => {
    const authority = issue('an authority', { ca: true });
    const fake = await fakeNode(() => undefined, issue('node', { issuer: authority }));
    const folder = await mkdtemp(join(tmpdir(), 'sparrow-authority-'));
    await writeFile(join(folder, 'right.pem'), authority.cert);
    await writeFile(join(folder, 'other.pem'), issue('another authority', { ca: true }).cert);
    for (const more of [[], ['--cluster-ca', join(folder, 'other.pem')]]) {
      const server = await start(fake.url, ...more);
      await until(() => /cannot be used yet.*certificate/.test(server.output()), server.output);
      expect(fake.asked).toEqual([]);
      server.child.kill('SIGKILL');
    }
    const server = await start(fake.url, '--cluster-ca', join(folder, 'right.pem'));
    await until(() => server.output().includes('"msg":"ready"'), server.output);
    await fake.close();
  });

  it('makes one owner key, however many servers are started at once over an empty cluster', async () => {
    // Both have seen that there is none before either of them writes.
    const waiting: (() => void)[] = [];
    const fake = await fakeNode(async ({ method, path }) => {
      if (method !== 'PUT' || !path.endsWith('/_doc/api_keys') || waiting.length >= 2) return undefined;
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 2) for (const go of waiting) go();
      });
      return undefined;
    });
    const servers = [await start(fake.url), await start(fake.url)];
    for (const { output } of servers) await until(() => output().includes('"msg":"ready"'), output);
    const keysOf = await fetch(`${fake.url}/.sparrow-keys/_doc/api_keys`);
    const { _source: source } = (await keysOf.json()) as { _source: { text: string } };
    const { keys } = JSON.parse(source.text) as { keys: { owner: boolean }[] };
    expect(keys.filter(({ owner }) => owner)).toHaveLength(1);

    const files = servers.map(({ data }) => join(data, 'owner.key'));
    const [file = ''] = files.filter((name) => existsSync(name));
    expect(files.filter((name) => existsSync(name))).toEqual([file]);
    const authorization = `ApiKey ${(await readFile(file, 'utf8')).trim()}`;
    for (const { url } of servers) {
      const answer = await fetch(`${url() ?? ''}/_security/_authenticate`, { headers: { authorization } });
      expect(answer.status).toBe(200);
    }
    // The one that came second says where the key is, and the one that has it need not.
    const hints = servers.map(({ output }) => output().includes('the owner key was made by another server'));
    expect(hints).toEqual(files.map((name) => !existsSync(name)));
    expect(servers.map(({ output }) => output().includes('the owner key is in'))).toEqual(hints.map((hint) => !hint));
    await fake.close();
  });

  it('keeps the owner key that the servers of a cluster have, unless it is told to replace it', async () => {
    const fake = await fakeNode(() => undefined);
    const folder = await mkdtemp(join(tmpdir(), 'sparrow-owner-'));
    const [first, second] = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const key = Buffer.from(`${name}:${randomBytes(16).toString('hex')}`).toString('base64');
        const file = join(folder, name);
        await writeFile(file, key);
        return { authorization: `ApiKey ${key}`, args: ['--api-key-file', file] };
      }),
    );
    const statusOf = async ({ url }: Started, authorization = '') =>
      (await fetch(`${url() ?? ''}/_security/_authenticate`, { headers: { authorization } })).status;
    const one = await start(fake.url, ...(first?.args ?? []));
    await until(() => one.output().includes('"msg":"ready"'), one.output);

    const refused = await start(fake.url, ...(second?.args ?? []));
    expect(await refused.exited).toBe(2);
    expect(refused.output()).toContain('sparrow: the servers of this cluster have another owner key than the one');
    expect(refused.output()).toContain('--cluster-replace-owner-key');
    expect(await statusOf(one, first?.authorization)).toBe(200);

    const two = await start(fake.url, '--cluster-replace-owner-key', ...(second?.args ?? []));
    await until(() => two.output().includes('"msg":"ready"'), two.output);
    expect(await statusOf(two, second?.authorization)).toBe(200);
    await until(async () => (await statusOf(one, first?.authorization)) === 401, one.output);
    expect(await statusOf(one, second?.authorization)).toBe(200);
    await fake.close();
  });

  it('ends with a sentence over a cluster of a version that it does not know', async () => {
    const url = await answering((_, response) => {
      const body = JSON.stringify({ version: { number: '1.3.0', distribution: 'opensearch' } });
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    const server = await start(url);
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain(
      'sparrow: the cluster is OpenSearch 1.3.0: Sparrow works over OpenSearch 2 and 3 and over Elasticsearch 8',
    );
  });

  it.each([
    ['nonsense', [], 'is not an address such as https://host:9200'],
    ['http://u:p@127.0.0.1:1', [], 'credentials belong into the file of --cluster-credentials'],
    [
      'http://127.0.0.1:1',
      ['--cluster-ca', '/no/such/file'],
      '--cluster-ca: cannot read /no/such/file: there is nothing of that name',
    ],
  ])('refuses %s with %j', async (cluster, args, sentence) => {
    const server = await start(cluster, ...args);
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain(sentence);
    expect(server.output()).not.toMatch(/\n {4}at /);
  });
});
