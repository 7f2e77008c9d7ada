import type { Json } from './json-text.js';

/**
 * Adds `stack_trace` to an error and each of its causes, for `?error_trace=true`. The core answers with values and unwinds
 * no stack, so a trace names what went wrong, each cause under the one that it caused, and the request.
 */
export function withTraces(body: Json, request: string): Json {
  if (body.kind !== 'object') return body;
  const entries = body.entries.map(([key, value]) => {
    const traced = key === '"error"' && value.kind === 'object' ? traceOf(value, request) : value;
    return [key, traced] as const;
  });
  return { kind: 'object', entries };
}

function traceOf(error: Json, request: string): Json {
  if (error.kind !== 'object') return error;
  const entries = error.entries.map(([key, value]) => {
    if (key === '"caused_by"') return [key, traceOf(value, request)] as const;
    if (key === '"root_cause"' && value.kind === 'array') {
      return [key, { kind: 'array', items: value.items.map((cause) => traceOf(cause, request)) } as const] as const;
    }
    return [key, value] as const;
  });
  const text = JSON.stringify(lines(error, request).join('\n'));
  return { kind: 'object', entries: [...entries, ['"stack_trace"', { kind: 'scalar', text }]] };
}

function lines(error: Json, request: string): string[] {
  const reason = member(error, '"reason"');
  const head = `${stringOf(member(error, '"type"'))}: ${stringOf(reason)}`;
  const cause = member(error, '"caused_by"');
  if (cause?.kind !== 'object') return [head, `\tat ${request}`];
  const [first = '', ...rest] = lines(cause, request);
  return [head, `\tat ${request}`, `Caused by: ${first}`, ...rest];
}

function member(json: Json, key: string): Json | undefined {
  return json.kind === 'object' ? json.entries.find(([name]) => name === key)?.[1] : undefined;
}

function stringOf(json: Json | undefined): string {
  if (json?.kind !== 'scalar') return '';
  return json.text.startsWith('"') ? (JSON.parse(json.text) as string) : json.text;
}
