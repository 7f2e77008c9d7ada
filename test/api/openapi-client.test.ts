// A client that others generate from the document at /_openapi.json: it compiles, and does what its types say.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import openapiTS, { type OpenAPI3, astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Types of the whole document take seconds to make, and to compile. */
const PATIENCE = 180_000;

/** What a user of the generated types writes; each line behind `@ts-expect-error` is one that they have to refuse. */
const PROGRAM = `
import createClient from 'openapi-fetch';
import type { paths } from './sparrow.js';

export async function run(baseUrl: string, key: string) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: \`ApiKey \${key}\` } });
  const index = 'notes';

  const made = await client.PUT('/{index}', {
    params: { path: { index } },
    body: {
      settings: { number_of_replicas: 0 },
      mappings: { properties: { title: { type: 'text' }, text: { type: 'semantic_text' }, year: { type: 'integer' } } },
    },
  });
  const written = await client.PUT('/{index}/_doc/{id}', {
    params: { path: { index, id: '1' }, query: { refresh: 'true' } },
    body: { title: 'Bread', text: 'Bread rises because yeast turns sugar into gas.', year: 2024 },
  });
  const bulk = await client.POST('/{index}/_bulk', {
    params: { path: { index }, query: { refresh: 'true' } },
    headers: { 'content-type': 'application/x-ndjson' },
    body: '{"index":{"_id":"2"}}\\n{"title":"Lava","text":"Lava is molten rock.","year":2020}\\n',
    bodySerializer: (lines) => lines,
  });
  const found = await client.POST('/{index}/_search', {
    params: { path: { index } },
    body: {
      size: 1,
      query: { bool: { must: { semantic: { field: 'text', query: 'why does dough grow?' } }, filter: { range: { year: { gte: 2021 } } } } },
      aggs: { years: { terms: { field: 'year' } } },
      highlight: { fields: { text: { number_of_fragments: 1 } } },
    },
  });
  const hit = found.data?.hits.hits[0];
  const id: string | undefined = hit?._id;
  const score: number | null | undefined = hit?._score;
  const highlight: string[] | undefined = hit?.highlight?.['text'];
  const missing = await client.GET('/{index}/_doc/{id}', { params: { path: { index: 'nowhere', id: '1' } } });
  const task = await client.POST('/_reindex', {
    params: { query: { wait_for_completion: false } },
    body: { source: { index }, dest: { index: 'copy' } },
  });
  const apiKey = await client.POST('/_security/api_key', {
    body: { name: 'shop', role_descriptors: { search: { indices: [{ names: [index], privileges: ['read'] }] } } },
  });
  const encoded: string | undefined = apiKey.data?.encoded;
  const health = await client.GET('/_cluster/health');

  // @ts-expect-error there is no such path
  void (() => client.GET('/{index}/_serach', { params: { path: { index } } }));
  // @ts-expect-error nor such a method of it
  void (() => client.DELETE('/{index}/_search', { params: { path: { index } } }));
  // @ts-expect-error an index has to be named
  void (() => client.POST('/{index}/_search', {}));
  // @ts-expect-error a number of hits is no text
  void (() => client.POST('/{index}/_search', { params: { path: { index } }, body: { size: 'ten' } }));
  // @ts-expect-error a key needs a name
  void (() => client.POST('/_security/api_key', { body: { expiration: 90 } }));
  // @ts-expect-error hits have no such member
  void hit?._sorce;

  return {
    made: made.data?.acknowledged,
    written: written.data?.result,
    errors: bulk.data?.errors,
    hit: { id, title: hit?._source?.['title'], isScored: typeof score === 'number', highlight },
    missing: missing.response.status,
    task: typeof task.data,
    encoded: typeof encoded,
    nodes: health.data?.number_of_nodes,
  };
}
`;

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), 'sparrow-client-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Compiles a file as strictly as the compiler can; gives what it says. */
function compiled(file: string): Promise<string> {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck'];
  const target = ['--target', 'es2022', '--module', 'nodenext'];
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, ...options, ...target, file], { cwd: folder }, (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}

it(
  'compiles, refuses what the server would refuse, and works',
  async () => {
    const { body } = await server.request('GET', '/_openapi.json', undefined, { apiKey: null });
    const types = await openapiTS(body as OpenAPI3, { defaultNonNullable: false, silent: true });
    writeFileSync(join(folder, 'sparrow.ts'), astToString(types));
    writeFileSync(join(folder, 'program.ts'), PROGRAM);
    expect(await compiled('program.ts')).toBe('');
    const program = (await import(pathToFileURL(join(folder, 'program.js')).href)) as {
      run: (url: string, key: string) => Promise<unknown>;
    };
    expect(await program.run(server.url, server.apiKey)).toEqual({
      made: true,
      written: 'created',
      errors: false,
      hit: {
        id: '1',
        title: 'Bread',
        isScored: true,
        highlight: ['Bread rises because yeast turns sugar into gas.'],
      },
      missing: 404,
      task: 'object',
      encoded: 'string',
      nodes: 1,
    });
  },
  PATIENCE,
);
