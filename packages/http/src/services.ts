import type { SearchEngine } from '@sparrow-search/engine';

import type { AsyncSearches } from './async-search/async-searches.js';
import type { Config } from './config.js';
import type { Admission } from './exchange/admission.js';
import type { InFlight } from './exchange/in-flight.js';
import type { Identity } from './identity.js';
import type { Instruments } from './instruments/instruments.js';
import type { Logger } from './log.js';
import type { Attempts } from './security/attempts.js';
import type { ScriptStore } from './search-templates/script-store.js';
import type { AuditLog } from './security/audit.js';
import type { KeyStore } from './security/key-store.js';
import type { TaskHistory } from './tasks/task-history.js';
import type { Tracing } from './tracing/tracing.js';

/** What the application needs once it serves. */
export interface Services {
  readonly engine: SearchEngine;
  readonly keys: KeyStore;
  readonly identity: Identity;
  readonly scripts: ScriptStore;
  /** Which tasks were started; absent where nobody notes that. */
  readonly tasks?: TaskHistory | undefined;
  /** The data directory. */
  readonly data: string;
  /** `host:port` that the server listens on. */
  readonly address: string;
}

export interface AppOptions {
  /** The services, or undefined as long as the engine is opening: then all but readiness answers 503. */
  readonly services: () => Services | undefined;
  readonly config: Pick<Config, 'maxBodyBytes' | 'productHeader' | 'compression'> &
    Partial<Pick<Config, 'mcpWrite' | 'metricsOpen' | 'slowRequestSeconds' | 'tlsCert'>>;
  readonly log: Logger;
  /** Whether the server is stopping: then it is alive, but not ready. */
  readonly stopping?: () => boolean;
  /** Where requests are counted; each application has its own unless it is given some. */
  readonly instruments?: Instruments;
  /** Where every request is written down, if anywhere. */
  readonly audit?: AuditLog | undefined;
  /**
   * Whether a request without a key is the owner's. Only for callers in this very process, which hold the engine anyway: nothing that
   * listens may have it.
   */
  readonly trusting?: boolean;
}

/** What all requests of an application share. */
export interface Application extends AppOptions {
  readonly instruments: Instruments;
  readonly attempts: Attempts;
  readonly admission: Admission;
  readonly asyncSearches: AsyncSearches;
  /** What bodies and answers hold on their way. */
  readonly inFlight: InFlight;
  /** Makes spans of requests, where the process has somewhere to send them. */
  readonly tracing: Tracing | undefined;
  /** Bytes that the engine may still allocate. */
  readonly room: () => number;
  /** Headers of every answer. */
  readonly headers: readonly (readonly [string, string])[];
}
