import { type EngineReply } from '@sparrow-search/engine';

import { type Json, edited, isObject, members, parse, valueOf, whole } from './json.js';

/**
 * The id of a point in time as clients see it: that of the cluster, and before it which indices were asked for, as a search in it has to
 * know what fields they have.
 */
export function shownId(expression: string, id: string): string {
  return `${Buffer.from(expression).toString('base64url')}.${id}`;
}

/** The two parts of such an id; an id that was made otherwise may be for any index. */
export function partsOf(id: string): { readonly expression: string; readonly id: string } {
  const [before = '', ...rest] = id.split('.');
  return rest.length === 0
    ? { expression: '*', id }
    : { expression: Buffer.from(before, 'base64url').toString(), id: rest.join('.') };
}

/** A search in a point in time, with the cluster's id of it; undefined for one in no point in time. */
export function inPointInTime(
  text: string | undefined,
): { readonly expression: string; readonly text: string } | undefined {
  if (text?.includes('"pit"') !== true) return undefined;
  const body = parse(text);
  const pit = isObject(body) ? body['pit'] : undefined;
  const shown = isObject(pit) ? pit['id'] : undefined;
  if (typeof shown !== 'string') return undefined;
  const { expression, id } = partsOf(shown);
  const place = members(text, whole(text).start).find(({ name }) => name === 'pit');
  const edit = { start: place?.start ?? 0, end: place?.end ?? 0, text: JSON.stringify({ ...(pit as Json), id }) };
  return { expression, text: edited(text, [edit]) };
}

/** The answer of such a search, which names the point in time as clients see it. */
export function withShownId(expression: string, reply: EngineReply): EngineReply {
  const text = reply.status === 200 ? Buffer.from(reply.body).toString() : '{}';
  const place = members(text, whole(text).start).find(({ name }) => name === 'pit_id');
  if (place === undefined) return reply;
  const shown = shownId(expression, String(valueOf(text, place)));
  const edit = { start: place.start, end: place.end, text: JSON.stringify(shown) };
  return { ...reply, body: Buffer.from(edited(text, [edit])) };
}
