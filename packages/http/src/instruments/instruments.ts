import { readdir } from 'node:fs/promises';

import { VERSION } from '@sparrow-search/endpoints';

import type { InFlight } from '../exchange/in-flight.js';
import type { AuditLog } from '../security/audit.js';
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
  /** What bodies and answers hold on their way; the application tells it. */
  inFlight?: Pick<InFlight, 'held' | 'limit'>;
  /** The audit log, where one is kept. */
  audit?: Pick<AuditLog, 'lost'> | undefined;

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
    page.gauge('sparrow_in_flight_bytes', 'Bytes of bodies and answers on their way.', this.inFlight?.held);
    page.gauge('sparrow_in_flight_limit_bytes', 'Most bytes that may be on their way.', this.inFlight?.limit);
    if (this.audit !== undefined) {
      page.counter(
        'sparrow_audit_lines_lost_total',
        'Lines that the audit log lacks, as the disk did not take them.',
        this.audit.lost,
      );
    }
    page.gauge(
      'sparrow_engine_answers',
      '1 when the figures of the engine are on this page.',
      engine === undefined ? 0 : 1,
    );
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
