import { createRequire } from 'node:module';

import type { Logger } from '../log.js';
import { type Api, OpenTelemetryTracing } from './open-telemetry.js';
import type { Tracing } from './tracing.js';

/** Where OpenTelemetry's API keeps what a process has configured, whichever copy of it that was configured by. */
const CONFIGURED = Symbol.for('opentelemetry.js.api.1');

/**
 * What makes spans of requests; undefined unless this process has a tracer provider, as with `node --import ./otel.mjs`. Without one
 * nothing is loaded.
 */
export function findTracing(log: Logger): Tracing | undefined {
  const configured = (globalThis as Readonly<Record<symbol, unknown>>)[CONFIGURED];
  if ((configured as { readonly trace?: unknown } | undefined)?.trace === undefined) return undefined;
  try {
    return new OpenTelemetryTracing(createRequire(import.meta.url)('@opentelemetry/api') as Api);
  } catch (error) {
    log.warn('requests are not traced: @opentelemetry/api is not installed beside Sparrow', { error: String(error) });
    return undefined;
  }
}
