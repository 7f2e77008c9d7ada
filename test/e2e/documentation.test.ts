// The documentation is true where a program can tell: commands run as they stand, links lead somewhere, named places are there.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ROOT, pagesUnder, read } from '../documentation/pages.js';
import { type RunningServer, startServer } from '../support/server.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...pagesUnder('docs'),
  ...pagesUnder('examples'),
];

/** The commands of a page that talk to a server, in order: those with curl, or those of the command line. */
function commands(page: string, kind: 'curl' | 'sparrow'): string {
  return [...read(page).matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, block = '']) => block)
    .filter((block) => !block.startsWith('npm ') && /^sparrow /m.test(block) === (kind === 'sparrow'))
    .join('\n');
}

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-readme-'));
  server = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

/** Runs a page's commands as they stand, but for where the server is; resolves with the answers. */
async function run(page: string): Promise<any[]> {
  const script = commands(page, 'curl')
    .replaceAll('localhost:9200', server.url.replace('http://', ''))
    .replaceAll('data/owner.key', join(server.data, 'owner.key'));
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script]);
  expect(stderr).toBe('');
  // Each answer begins a line; a document that was sent in several is shown in several.
  return stdout
    .trim()
    .split(/\n(?=\{)/)
    .map((answer) => JSON.parse(answer) as any);
}

describe('the commands of', () => {
  it('README.md give what it says', async () => {
    const answers = await run('README.md');
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
    const searches = answers.filter(({ hits }) => hits !== undefined);
    expect(searches.map(({ hits }) => hits.hits[0]?._source.content)).toEqual([
      expect.stringContaining('Sore muscles'),
      expect.stringContaining('Sore muscles'),
    ]);
    const { encoded } = answers.find((answer) => 'encoded' in answer) as { encoded: string };
    const apiKey = { apiKey: encoded };
    expect((await server.request('GET', '/guide/_search', undefined, apiKey)).body.hits.total.value).toBe(1);
    expect((await server.request('PUT', '/guide/_doc/3', {}, apiKey)).status).toBe(403);
  });

  it('the command line, after those, work in a folder without any file of theirs', async () => {
    const script = `sparrow() { '${process.execPath}' '${CLI}' "$@"; }\n${commands('README.md', 'sparrow')}`;
    const env = { ...process.env, SPARROW_URL: server.url, SPARROW_DATA: server.data, NO_COLOR: '1' };
    const options = { cwd: folder, env };
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], options);
    expect(stdout).toMatch(/^trivia\.jsonl: 2 documents in \[trivia\]/);
    expect(stdout).toMatch(/^ 1 .*\n +Blue whales are the largest/m);
    expect(stdout).toMatch(/^\d{8}-\d{6}: \d+ ind(?:ex|ices) in /m);
    expect(stdout).toMatch(/^trivia +2 /m);
  });
});

it.each(PAGES)('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  const local = links.filter((link) => !/^(?:https?:|#)/.test(link)).map((link) => link.replace(/#.*$/, ''));
  expect(local.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
});

it('every page of docs/ is in its index', () => {
  const index = read('docs/README.md');
  const pages = pagesUnder('docs').map((page) => page.replace(/^docs\//, ''));
  expect(pages.filter((page) => page !== 'README.md' && !index.includes(`](${page})`))).toEqual([]);
});

it('the places that ARCHITECTURE.md names are there', () => {
  const named = [
    ...read('ARCHITECTURE.md').matchAll(/`((?:crates|packages|benches|docs|scripts|test|tools|xtask)\/[^`<>*\s]*)`/g),
  ];
  const places = named.map(([, place = '']) => place);
  expect(places.length).toBeGreaterThan(20);
  expect(places.filter((place) => !existsSync(join(ROOT, place)))).toEqual([]);
});
