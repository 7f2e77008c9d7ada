// `sparrow import` of plain text and Markdown, against a real server.
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Ended, sparrow } from './support.js';

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-texts-'));
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<Ended> =>
  sparrow(['import', ...args, '--url', server.url, '--data', server.data]);
const sources = async (index: string): Promise<any[]> => {
  const { body } = await server.request('POST', `/${index}/_search`, { size: 100, sort: ['part'] });
  return body.hits.hits.map(({ _source }: any) => _source);
};

const LONG = 'A sentence of five words. '.repeat(30);
const TEXT = `\uFEFFA word before.\r\n\r\n# Birds\r\nThey fly\r\nhigh.\r\n  \r\nThey sing.\r\n\r\n## Fish ##\r\n\r\n${LONG}\r\n\r\n${LONG}`;

it('makes documents of paragraphs, with the heading above them and the mapping of a file', async () => {
  const path = join(folder, 'animals.md');
  await writeFile(path, TEXT);
  expect(await run(path)).toMatchObject({ code: 0, stdout: expect.stringContaining('4 documents in [animals]') });
  expect(await sources('animals')).toEqual([
    { text: 'A word before.', part: 1, file: 'animals.md' },
    { title: 'Birds', text: 'Birds\n\nThey fly\nhigh.\n\nThey sing.', part: 2, file: 'animals.md' },
    { title: 'Fish', text: `Fish\n\n${LONG.trim()}`, part: 3, file: 'animals.md' },
    { title: 'Fish', text: `Fish\n\n${LONG.trim()}`, part: 4, file: 'animals.md' },
  ]);
  const { body } = await server.request('GET', '/animals/_mapping');
  // Not the heading by itself, which each part below it repeats.
  expect(body.animals.mappings.properties.title).not.toHaveProperty('copy_to');
  expect(body.animals.mappings.properties).toMatchObject({
    text: { type: 'text', copy_to: ['meaning'] },
    part: { type: 'long' },
    meaning: { type: 'semantic_text', inference_id: '.hybrid' },
  });
});

it('reads a text that has grown from its start, as its last part may have grown', async () => {
  const path = join(folder, 'grows.txt');
  await writeFile(path, 'One.\n\nTwo.');
  expect((await run(path)).code).toBe(0);
  expect((await run(path)).stderr).toContain('all of it was imported before');
  await appendFile(path, ' More of it.\n\nThree.\n');
  expect((await run(path)).code).toBe(0);
  expect(await sources('grows')).toEqual([{ text: 'One.\n\nTwo. More of it.\n\nThree.', part: 1, file: 'grows.txt' }]);
});

it('takes --format text for a name that does not say it, and follows none', async () => {
  const path = join(folder, 'README');
  await writeFile(path, 'Hello there.\n');
  const index = ['--index', 'readme'];
  expect(await run(path, ...index)).toMatchObject({ code: 2, stderr: expect.stringContaining('tsv, text') });
  expect((await run(path, ...index, '--format', 'text')).code).toBe(0);
  expect(await sources('readme')).toEqual([{ text: 'Hello there.', part: 1, file: 'README' }]);
  expect((await run(path, ...index, '--format', 'text', '--follow')).stderr).toContain('paragraphs of a text');
});
