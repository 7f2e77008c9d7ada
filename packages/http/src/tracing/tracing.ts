import type { Route } from '@sparrow-search/endpoints';
import type { EngineReply, EngineRequest, Operation } from '@sparrow-search/engine';

import type { Exchange } from '../exchange/exchange.js';

/** Makes spans of requests. Without types of OpenTelemetry, which need not be installed. */
export interface Tracing {
  /** Begins the span of a request: a part of the trace that its headers name, or that is under way here; undefined if nobody wants it. */
  begin(exchange: Exchange, route: Route | undefined): RequestSpan | undefined;
}

/** The span of a request, and those of its parts. */
export interface RequestSpan {
  /** The trace that it is a part of. */
  readonly traceId: string;

  /** Does something of which all spans of this process are parts of this one. */
  run<T>(work: () => T): T;

  /** Has the engine carry out an operation, and makes spans of that and of its parts. */
  carryOut(
    op: Operation,
    execute: (tell: NonNullable<EngineRequest['phases']>) => Promise<EngineReply>,
  ): Promise<EngineReply>;

  /** Ends it with the status of the answer. */
  end(status: number): void;
}
