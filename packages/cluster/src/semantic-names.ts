import type { EngineReply } from '@sparrow-search/engine';

import { hitSpans } from './hits.js';
import { type Edit, type Span, edited, members, rawOf, whole } from './json.js';
import { COMPANION, passagesOf, pathOfSlot } from './passage-mappings.js';
import { type SemanticIndices, searchedSlots } from './semantic-fields.js';

/** Members of an answer that say how queries were understood and carried out. */
const ABOUT_QUERIES: ReadonlySet<string> = new Set(['profile', 'explanation', 'explanations']);

/** An answer whose explanations and profiles name `semantic_text` fields, and not where their passages are. */
export function withFieldNames(known: SemanticIndices | undefined, reply: EngineReply): EngineReply {
  const text = known === undefined || reply.status !== 200 ? '' : Buffer.from(reply.body).toString();
  if (known === undefined || !text.includes(COMPANION)) return reply;
  const about: Span[] = [
    ...members(text, whole(text).start).filter(({ name }) => ABOUT_QUERIES.has(name)),
    ...hitSpans(text).flatMap(({ start }) => members(text, start).filter(({ name }) => name === '_explanation')),
  ];
  const slots = [...new Set(known.indices.flatMap((index) => searchedSlots(index)))];
  // A path may be the beginning of another one.
  slots.sort((one, other) => other.length - one.length);
  const shown = (part: string): string =>
    slots.reduce((all, slot) => {
      const [from, to] = [inText(passagesOf(slot)), inText(pathOfSlot(slot))];
      return all.replaceAll(`${from}.tokens`, to).replaceAll(`${from}.vector`, to).replaceAll(from, to);
    }, part);
  const edits: Edit[] = about.map(({ start, end }) => ({ start, end, text: shown(rawOf(text, { start, end })) }));
  return { ...reply, body: Buffer.from(edited(text, edits)) };
}

/** As it stands inside a string of JSON. */
function inText(name: string): string {
  return JSON.stringify(name).slice(1, -1);
}
