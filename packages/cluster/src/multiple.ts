import { Turns } from '@sparrow-search/engine';

import { elements, malformedAnswer, members, rawOf, whole } from './json.js';
import { encodeExpression } from './names.js';
import { passedOn } from './replies.js';
import type { Transport } from './transport.js';

/** Parameters of an address that say which indices, and go where the indices are named. */
export const OF_TARGET = [
  'routing',
  'preference',
  'ignore_unavailable',
  'allow_no_indices',
  'expand_wildcards',
  'search_type',
];

/** What of the parameters of a search says which indices and shards are searched. */
export function targetOf(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(query).filter(([name]) => OF_TARGET.includes(name)));
}

/** Where and how long documents are looked for. */
export interface Asking {
  readonly transport: Transport;
  /** The indices. */
  readonly expression: string;
  /** What {@link targetOf} gave. */
  readonly target: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** The point in time that says which documents, and in which indices, as the section of a search in the cluster. */
  readonly pit?: string | undefined;
}

/**
 * Several searches in one request; each has to succeed.
 *
 * @returns the answer to each, as the cluster wrote it
 * @throws {EngineError} the first error of the cluster's
 */
export async function multiple(
  { transport, expression, target, signal, pit }: Asking,
  searches: readonly string[],
): Promise<readonly string[]> {
  const header = JSON.stringify(target);
  const inView = (one: string): string => (pit === undefined ? one : `{"pit":${pit},${one.slice(1)}`);
  const answered = await transport.ask({
    method: 'POST',
    path: pit === undefined ? `/${encodeExpression(expression)}/_msearch` : '/_msearch',
    body: searches.map((one) => `${header}\n${inView(one)}\n`).join(''),
    ndjson: true,
    signal,
    repeatable: true,
  });
  const text = answered.body.toString();
  if (answered.status !== 200) throw passedOn(answered);
  const responses = membersOf(text).find(({ name }) => name === 'responses');
  const parts = responses === undefined ? [] : elements(text, responses.start).map((span) => rawOf(text, span));
  if (parts.length !== searches.length) throw malformedAnswer();
  const turns = new Turns();
  for (const part of parts) {
    await turns.next();
    const sections = new Map(membersOf(part).map((member) => [member.name, rawOf(part, member)]));
    const [error, status] = [sections.get('error'), sections.get('status')];
    if (error === undefined && !sections.has('hits')) throw malformedAnswer();
    if (error === undefined) continue;
    throw passedOn({
      status: Number(status ?? 500),
      body: Buffer.from(`{"error":${error},"status":${status ?? '500'}}`),
    });
  }
  return parts;
}

/** The members of a text that is an object. */
export function membersOf(text: string): ReturnType<typeof members> {
  return members(text, whole(text).start);
}

/** A member of a text that is an object, as it is written. */
export function sectionOf(text: string, name: string): string | undefined {
  if (text === '') return undefined;
  const member = membersOf(text).find((it) => it.name === name);
  return member === undefined ? undefined : rawOf(text, member);
}
