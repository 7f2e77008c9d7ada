import { traceOf } from '../exchange/trace-context.js';
import type { Call } from './call.js';

/** Writes a line about a request, if it was slow or every one has a line. Needs its status, adds nothing. */
export function logRequest(call: Call, status: number): void {
  const { config, log } = call.application;
  const ms = performance.now() - call.begun;
  const slowMillis = (config.slowRequestSeconds ?? 0) * 1000;
  const isSlow = slowMillis > 0 && ms >= slowMillis;
  if (!log.debugging && !isSlow) return;
  const line = { ...namesOf(call), route: call.route?.path ?? null, status, ms: Math.round(ms * 100) / 100 };
  if (isSlow) log.warn('slow request', line);
  else log.debug('request', line);
}

/** What a request is called in the log. */
export function namesOf({ exchange, requestId, span }: Call): Record<string, string> {
  const opaqueId = exchange.header('x-opaque-id');
  const traceId = span?.traceId ?? traceOf(exchange.header('traceparent'));
  return {
    request_id: requestId,
    method: exchange.method,
    path: exchange.path,
    ...(opaqueId === undefined ? {} : { opaque_id: opaqueId }),
    ...(traceId === undefined ? {} : { 'trace.id': traceId }),
  };
}
