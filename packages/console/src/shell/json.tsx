// JSON in colours. What is no JSON, such as the line of a request before it, stays as it is.
import type { JSX } from 'preact';

/** Longer texts stay in one colour: each value is an element of the page. */
const LONGEST = 200_000;
/** A text with the colon of a name behind it, a word, or a number. A preview may end within a text. */
const VALUES = /("(?:\\.|[^"\\])*(?:"|\\?$))(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

export function Json({ text }: { readonly text: string }): JSX.Element {
  const begin = text.search(/^[[{]/m);
  if (begin === -1 || text.length > LONGEST) return <>{text}</>;
  const pieces: (string | JSX.Element)[] = [text.slice(0, begin)];
  let at = begin;
  for (const found of text.slice(begin).matchAll(VALUES)) {
    const [whole, quoted, colon, word] = found;
    const value = quoted ?? whole;
    const kind = colon !== undefined ? 'name' : quoted !== undefined ? 'text' : word !== undefined ? 'word' : 'number';
    pieces.push(text.slice(at, begin + found.index));
    pieces.push(
      <span key={found.index} class={`json-${kind}`}>
        {value}
      </span>,
    );
    at = begin + found.index + value.length;
  }
  pieces.push(text.slice(at));
  return <>{pieces}</>;
}
