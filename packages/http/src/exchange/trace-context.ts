/** The form of a `traceparent` header: version, trace, span, flags. */
const TRACE_PARENT = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/;

/** The trace that a request is part of, by its `traceparent`; undefined for one that says nothing of use. */
export function traceOf(header: string | undefined): string | undefined {
  const trace = header === undefined ? undefined : TRACE_PARENT.exec(header)?.[1];
  return trace === undefined || /^0+$/.test(trace) ? undefined : trace;
}
