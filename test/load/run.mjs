// Starts a server, fills it, and measures it under load; what `npm run test:load` and its short form in `npm test` do.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';
import { Random } from '../crash/random.mjs';
import { documents } from './requests.mjs';
import { measure } from './measure.mjs';

/**
 * Measures each of some numbers of clients for so many milliseconds.
 *
 * @param {{clients: number[], ms: number, seed: number, count: number, patient: boolean, say: (text: string) => void}} options
 */
export async function runLoad({ clients, ms, seed, count, patient, say }) {
  const generator = new Random(seed);
  const random = () => generator.next();
  const data = mkdtempSync(join(tmpdir(), 'sparrow-load-'));
  const cli = at('packages', 'server', 'dist', 'cli.js');
  const started = await startServer(process.execPath, [cli, '--deploy-at-start', 'false'], data);
  try {
    const apiKey = readFileSync(join(data, 'owner.key'), 'utf8').trim();
    const server = { pid: started.pid, url: started.url, apiKey };
    await fill(server, random, count);
    // What is compiled and cached with the first requests is no part of it.
    await measure(server, { clients: 8, ms: Math.min(ms, 2000), random, patient });
    const rows = [];
    for (const number of clients) {
      const row = await measure(server, { clients: number, ms, random, patient });
      say(`${number} clients: ${row.ok} answered, ${row.refused} refused, ${row.failed} failed, ${row.cut} cut`);
      rows.push(row);
    }
    return rows;
  } finally {
    await started.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

async function fill(server, random, count) {
  const send = async (path, body) => {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `ApiKey ${server.apiKey}`, 'content-type': 'application/x-ndjson' },
      body,
    });
    const { errors } = await answer.json();
    if (!answer.ok || errors === true) throw new Error(`the index could not be filled: ${answer.status}`);
  };
  for (let done = 0; done < count; done += 1000) {
    await send('/load/_bulk?refresh=true', documents(random, Math.min(1000, count - done)));
  }
}
