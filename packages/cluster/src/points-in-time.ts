import { type EngineReply } from '@sparrow-search/engine';

import { type Json, edited, isObject, members, parse, valueOf, whole } from './json.js';

/** A point in time or a scroll that is open in the cluster. */
export interface Opened {
  /** The indices that it was opened for: a search in it has to know what fields they have. */
  readonly expression: string;
  /** Shows that the id was made for these; empty where it is not known. */
  readonly seal: string;
  /** The id of the cluster. */
  readonly id: string;
}

/** The id of something that is open as clients see it. */
export function shownId({ expression, seal, id }: Opened): string {
  return `${Buffer.from(expression).toString('base64url')}.${seal}.${id}`;
}

/** The parts of such an id; an id that was made otherwise may be for any index. */
export function partsOf(shown: string): Opened {
  const [before = '', seal = '', ...rest] = shown.split('.');
  return rest.length === 0
    ? { expression: '*', seal: '', id: shown }
    : { expression: Buffer.from(before, 'base64url').toString(), seal, id: rest.join('.') };
}

/** A search in a point in time, with the cluster's id of it; undefined for one in no point in time. */
export function inPointInTime(
  text: string | undefined,
): { readonly expression: string; readonly shown: string; readonly text: string } | undefined {
  if (text?.includes('"pit"') !== true) return undefined;
  const body = parse(text);
  const pit = isObject(body) ? body['pit'] : undefined;
  const shown = isObject(pit) ? pit['id'] : undefined;
  if (typeof shown !== 'string') return undefined;
  const { expression, id } = partsOf(shown);
  const place = members(text, whole(text).start).find(({ name }) => name === 'pit');
  const edit = { start: place?.start ?? 0, end: place?.end ?? 0, text: JSON.stringify({ ...(pit as Json), id }) };
  return { expression, shown, text: edited(text, [edit]) };
}

/** An answer that names what is open as clients see it. */
export async function withShownId(
  reply: EngineReply,
  member: 'pit_id' | '_scroll_id',
  shownAs: (id: string) => Promise<string>,
): Promise<EngineReply> {
  const text = reply.status === 200 ? Buffer.from(reply.body).toString() : '{}';
  const place = members(text, whole(text).start).find(({ name }) => name === member);
  if (place === undefined) return reply;
  const shown = await shownAs(String(valueOf(text, place)));
  const edit = { start: place.start, end: place.end, text: JSON.stringify(shown) };
  return { ...reply, body: Buffer.from(edited(text, [edit])) };
}
