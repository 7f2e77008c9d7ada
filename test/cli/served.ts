// A server for the tests of a file, and commands against it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, expect } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Ended, sparrow } from './support.js';

export interface Served {
  readonly server: RunningServer;
  /** A folder for files of the tests; below `snapshots` in it, the server has its repositories. */
  readonly folder: string;
  /** Runs a command against the server, whose key it finds in the data directory. */
  readonly run: (...args: string[]) => Promise<Ended>;
  /** Runs a command that should work; gives its answer in JSON. */
  readonly json: (...args: string[]) => Promise<any>;
  /** Runs a command that should work; gives what it says. */
  readonly said: (...args: string[]) => Promise<string>;
}

/** Starts an empty server; it ends with the tests of the file. */
export async function serveNothing(): Promise<Pick<Served, 'server' | 'folder'>> {
  const folder = await mkdtemp(join(tmpdir(), 'sparrow-cli-'));
  const server = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return { server, folder };
}

/** Starts a server with an index `articles` of three documents; it ends with the tests of the file. */
export async function serve(): Promise<Served> {
  const { server, folder } = await serveNothing();
  await server.request('PUT', '/articles', {
    mappings: {
      properties: {
        title: { type: 'text', copy_to: 'meaning' },
        meaning: { type: 'semantic_text' },
        n: { type: 'integer' },
      },
    },
  });
  const titles = [
    'Blue whales are the largest animals',
    'Bread rises because yeast makes gas',
    'Sore muscles need rest',
  ];
  for (const [n, title] of titles.entries()) await server.request('PUT', `/articles/_doc/${String(n)}`, { title, n });
  await server.request('POST', '/articles/_refresh');
  const run = (...args: string[]): Promise<Ended> => sparrow([...args, '--url', server.url, '--data', server.data]);
  const json = async (...args: string[]): Promise<any> => {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect([code, stderr], args.join(' ')).toEqual([0, '']);
    return JSON.parse(stdout);
  };
  const said = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stderr], args.join(' ')).toEqual([0, '']);
    expect(stdout).not.toContain('\u001b');
    return stdout;
  };
  return { server, folder, run, json, said };
}
