import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import type { Encoded, Text } from './queries.js';
import { askNative } from './semantic-fields.js';
import type { Tokens } from './sparse-queries.js';

/** What a model makes of a text. */
type Made = Tokens | readonly number[];

/**
 * Texts as tokens with weights or as dense vectors: all of a request are read in one call, and those that go to the same model together.
 *
 * @throws {EngineError} what the native engine says of a model that is not there, is not deployed, or makes something else
 */
export async function encode(native: SearchEngine, texts: readonly Text[], cancel?: Cancel): Promise<Encoded> {
  const byModel = new Map<string, Pick<Text, 'id' | 'wants'> & { readonly texts: Set<string> }>();
  for (const { id, wants, text } of texts) {
    const key = `${wants}:${id}`;
    const group = byModel.get(key) ?? { id, wants, texts: new Set<string>() };
    byModel.set(key, group);
    group.texts.add(text);
  }
  const found = new Map<string, Made>();
  if (byModel.size > 0) {
    const asked = [...byModel.values()].map((it) => ({ model: it.id, wants: it.wants, texts: [...it.texts] }));
    const answer = await askNative(native, 'encode_texts', asked, cancel);
    const { encoded } = JSON.parse(answer) as { encoded: Made[][] };
    asked.forEach(({ model, wants, texts: read }, at) => {
      read.forEach((text, place) => found.set(`${wants}:${model}:${text}`, encoded[at]?.[place] ?? {}));
    });
  }
  const of = ({ id, wants, text }: Text): Made => found.get(`${wants}:${id}:${text}`) ?? {};
  return { tokens: (text) => of(text) as Tokens, vector: (text) => of(text) as readonly number[] };
}
