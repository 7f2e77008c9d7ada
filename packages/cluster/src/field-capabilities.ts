import type { EngineReply } from '@sparrow-search/engine';

import { type Json, asBuffer, isObject, parseAnswer } from './json.js';
import { COMPANION } from './passage-mappings.js';
import type { SemanticFields } from './semantic-fields.js';

/** An answer of `_field_caps` without the passages that are kept beside documents, and with their fields as the native engine shows them. */
export async function shownCapabilities(
  semantic: SemanticFields,
  expression: string,
  reply: EngineReply,
): Promise<EngineReply> {
  if (reply.status !== 200 || !asBuffer(reply.body).includes(`"${COMPANION}`)) return reply;
  const known = await semantic.of(expression);
  const paths = new Set(known?.indices.flatMap(({ fields }) => Object.keys(fields)));
  const answer = parseAnswer(asBuffer(reply.body)) as { readonly fields: Readonly<Record<string, Json>> };
  const fields = Object.entries(answer.fields)
    .filter(([name]) => name !== COMPANION && !name.startsWith(`${COMPANION}.`))
    .map(([name, types]) => {
      const text = types['text'];
      // Words in it are not looked for, but it is.
      const shown = paths.has(name) && isObject(text) ? { ...types, text: { ...text, searchable: true } } : types;
      return [name, shown];
    });
  return { ...reply, body: Buffer.from(JSON.stringify({ ...answer, fields: Object.fromEntries(fields) as object })) };
}
