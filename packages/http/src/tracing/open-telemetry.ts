import type * as OpenTelemetry from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import { type Route, VERSION } from '@sparrow-search/endpoints';
import { type EngineReply, type EngineRequest, type Operation, type Phases, EngineError } from '@sparrow-search/engine';

import type { Exchange } from '../exchange/exchange.js';
import type { RequestSpan, Tracing } from './tracing.js';

export type Api = typeof OpenTelemetry;

/** From which status on an answer is the server's fault. */
const FAULTS = 500;

/** Makes spans with the tracer provider of the process. */
export class OpenTelemetryTracing implements Tracing {
  readonly #api: Api;
  readonly #tracer: Tracer;

  constructor(api: Api) {
    this.#api = api;
    this.#tracer = api.trace.getTracer('sparrow', VERSION);
  }

  begin(exchange: Exchange, route: Route | undefined): RequestSpan | undefined {
    const { context, propagation, trace, SpanKind } = this.#api;
    const here = context.active();
    // Where Node's own server is traced, its span is the one that the client has to do with.
    const isInside = trace.getSpan(here) !== undefined;
    const around = isInside
      ? here
      : propagation.extract(here, exchange, { get: (from, name) => from.header(name), keys: () => [] });
    const { method } = exchange;
    const span = this.#tracer.startSpan(
      route === undefined ? method : `${method} ${route.path}`,
      {
        kind: isInside ? SpanKind.INTERNAL : SpanKind.SERVER,
        attributes: {
          'http.request.method': method,
          'url.path': exchange.path,
          ...(route === undefined ? {} : { 'http.route': route.path }),
        },
      },
      around,
    );
    if (span.isRecording()) return new OpenTelemetrySpan(this.#api, this.#tracer, span, around);
    span.end();
    return undefined;
  }
}

class OpenTelemetrySpan implements RequestSpan {
  readonly #api: Api;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;
  readonly traceId: string;

  constructor(api: Api, tracer: Tracer, span: Span, around: Context) {
    this.#api = api;
    this.#tracer = tracer;
    this.#span = span;
    this.#context = api.trace.setSpan(around, span);
    this.traceId = span.spanContext().traceId;
  }

  run<T>(work: () => T): T {
    return this.#api.context.with(this.#context, work);
  }

  async carryOut(
    op: Operation,
    execute: (tell: NonNullable<EngineRequest['phases']>) => Promise<EngineReply>,
  ): Promise<EngineReply> {
    const span = this.#tracer.startSpan(`engine ${op}`, { attributes: { 'sparrow.operation': op } }, this.#context);
    const begun = now();
    try {
      return await execute((phases) => {
        this.#record(phases, begun, this.#api.trace.setSpan(this.#context, span));
      });
    } catch (error) {
      const isRefused = error instanceof EngineError && error.status < FAULTS;
      if (!isRefused) span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }

  end(status: number): void {
    this.#span.setAttribute('http.response.status_code', status);
    if (status >= FAULTS) {
      this.#span.setAttribute('error.type', String(status));
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    }
    this.#span.end();
  }

  /** Spans of the parts of a search. The engine tells how long each took; they come one after another. */
  #record(phases: Phases, begun: number, parent: Context): void {
    let at = begun;
    const part = (name: string, took: number, attributes: Attributes = {}): void => {
      if (took === 0) return;
      const span = this.#tracer.startSpan(name, { startTime: at, attributes }, parent);
      at += took;
      span.end(at);
    };
    for (const { id, texts, cached, took, queued } of phases.models) {
      part('encode', took, {
        'sparrow.model': id,
        'sparrow.texts': texts,
        'sparrow.cache_hits': cached,
        'sparrow.queue_ms': queued,
      });
    }
    for (const name of ['search', 'fuse', 'fetch', 'highlight', 'explain'] as const) part(name, phases[name]);
  }
}

/** Now, in milliseconds since 1970, with fractions. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
