import { readdir } from 'node:fs/promises';

import { VERSION } from '../identity.js';
import { ConnectionFigures } from './connections.js';
import { type EngineFigures, exposeEngine } from './engine.js';
import { Exposition } from './exposition.js';
import { RequestFigures } from './requests.js';
import { RuntimeWatch } from './runtime.js';

/** Everything that the HTTP layer counts and watches. One for each server. */
export class Instruments {
  readonly requests = new RequestFigures();
  readonly connections = new ConnectionFigures();
  readonly runtime = new RuntimeWatch();

  /**
   * The page that Prometheus reads.
   *
   * @param ready whether requests are served
   * @param engine what the engine says about itself, once it is open
   */
  async page(ready: boolean, engine: EngineFigures | undefined): Promise<string> {
    const page = new Exposition();
    page.gauge('sparrow_build_info', 'Always 1; the label is the version.', [
      { labels: { version: VERSION }, value: 1 },
    ]);
    page.gauge('sparrow_ready', '1 when requests are served, 0 while the server starts or stops.', ready ? 1 : 0);
    this.requests.expose(page);
    this.connections.expose(page);
    await this.runtime.expose(page);
    page.gauge('sparrow_process_open_files', 'File descriptors in use.', await openFiles());
    if (engine !== undefined) exposeEngine(page, engine);
    return page.toString();
  }
}

async function openFiles(): Promise<number | undefined> {
  try {
    return (await readdir('/proc/self/fd')).length;
  } catch {
    return undefined;
  }
}
