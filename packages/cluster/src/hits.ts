import { type Span, elements, members, rawOf, textOf, valueOf, whole } from './json.js';
import { PAYLOAD } from './passage-mappings.js';

/** A document that a search found, in the order of sequence numbers. */
export interface SourceHit {
  readonly id: string;
  readonly routing: string | undefined;
  /** Its source as it is written; undefined where the index keeps none. */
  readonly source: string | undefined;
  readonly seqNo: number;
  /** The primary term of its last write, if that is asked for. */
  readonly term: number | undefined;
  /** The stored passages of the document, in Base64, if the request asks for them. */
  readonly payload: string | undefined;
}

/** Where each hit stands in the answer of a search. */
export function hitSpans(text: string): readonly Span[] {
  const member = (start: number, name: string) => members(text, start).find((it) => it.name === name);
  const hits = member(whole(text).start, 'hits');
  const list = hits === undefined ? undefined : member(hits.start, 'hits');
  return list === undefined ? [] : elements(text, list.start);
}

/** The hits of a search that is sorted by `_seq_no`, their sources as they are written: numbers keep all their digits. */
export function sourceHits(text: string): readonly SourceHit[] {
  return hitSpans(text).map((span) => {
    const parts = new Map(members(text, span.start).map((it) => [it.name, it]));
    const value = (name: string): unknown => {
      const part = parts.get(name);
      return part === undefined ? undefined : valueOf(text, part);
    };
    const source = parts.get('_source');
    const stored = value('fields') as Readonly<Record<string, readonly unknown[]>> | undefined;
    return {
      id: String(value('_id')),
      routing: textOf(value('_routing')),
      source: source === undefined ? undefined : rawOf(text, source),
      payload: textOf(stored?.[PAYLOAD]?.[0]),
      term: value('_primary_term') as number | undefined,
      seqNo: Number((value('sort') as unknown[])[0] ?? 0),
    };
  });
}
