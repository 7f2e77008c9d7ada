import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { malformedAnswer } from './json.js';
import type { Encoded, Text } from './queries.js';
import { executeNative, textIn } from './semantic-fields.js';
import type { Tokens } from './sparse-queries.js';

/** What a model makes of a text, and whether the text holds no word, so that it matches nothing whatever that is. */
interface Made {
  readonly made: Tokens | readonly number[];
  readonly blank: boolean;
}

const UNREAD: Made = { made: {}, blank: false };

/**
 * Texts as tokens with weights or as dense vectors: all of a request, but for those of clauses on `semantic_text` fields, are read in one
 * call, and those that go to the same model together.
 *
 * @throws {EngineError} what the native engine says of a model that is not there, is not deployed, or makes something else
 */
export async function encode(
  native: SearchEngine,
  texts: readonly Text[],
  cancel?: Cancel,
): Promise<{ readonly encoded: Encoded; readonly warnings: readonly string[] }> {
  const byModel = new Map<string, Pick<Text, 'id' | 'wants'> & { readonly made: Map<string, Made> }>();
  const keyOf = ({ id, wants }: Text): string => `${wants}:${id}`;
  for (const asked of texts) {
    const group = byModel.get(keyOf(asked)) ?? { id: asked.id, wants: asked.wants, made: new Map<string, Made>() };
    byModel.set(keyOf(asked), group);
    group.made.set(asked.text, UNREAD);
  }
  const groups = [...byModel.values()];
  const asked = groups.map(({ id, wants, made }) => ({ model: id, wants, texts: [...made.keys()] }));
  const reply = asked.length === 0 ? undefined : await executeNative(native, 'encode_texts', asked, cancel);
  const { encoded } = reply === undefined ? { encoded: [] } : (JSON.parse(textIn(reply)) as { encoded: Made[][] });
  groups.forEach(({ made }, at) => {
    for (const [place, text] of [...made.keys()].entries()) {
      const one = encoded[at]?.[place];
      if (one === undefined) throw malformedAnswer();
      made.set(text, one);
    }
  });
  const of = (text: Text): Made => byModel.get(keyOf(text))?.made.get(text.text) ?? UNREAD;
  return {
    encoded: {
      tokens: (text) => (of(text).blank ? {} : (of(text).made as Tokens)),
      vector: (text) => of(text).made as readonly number[],
      isBlank: (text) => of(text).blank,
    },
    warnings: reply?.warnings ?? [],
  };
}
