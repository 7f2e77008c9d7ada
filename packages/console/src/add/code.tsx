// What the page has just done, as code for one's own program.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import type { Written } from '../requests/catalog';
import { LANGUAGES, type Language, asCode } from '../requests/copy';
import { Copy } from '../shell/parts';
import { type Document, bulkLines } from './bulk';

/** Documents that are shown of those that were written: the others go in the same way. */
const SHOWN = 2;

/** The requests that put documents into an index; `made` is the one that made the index or its fields, where there was one. */
export function requestsOf(index: string, made: Written | undefined, documents: readonly Document[]): Written[] {
  const path = `/${encodeURIComponent(index)}/_bulk?refresh=true`;
  const some = { method: 'POST', path, body: bulkLines(documents.slice(0, SHOWN)) };
  return made === undefined ? [some] : [made, some];
}

export function AsCode({ requests }: { readonly requests: readonly Written[] }): JSX.Element {
  const [language, setLanguage] = useState<Language>('curl');
  const text = requests.map((request) => asCode(language, location.origin, request).trim()).join('\n\n');
  return (
    <details class="raw">
      <summary>The same from your own program (with the first documents)</summary>
      <div class="buttons">
        {LANGUAGES.map((one) => (
          <button
            key={one}
            type="button"
            class="quiet"
            aria-pressed={one === language}
            onClick={() => {
              setLanguage(one);
            }}
          >
            {one}
          </button>
        ))}
        <Copy text={() => text} />
      </div>
      <pre tabIndex={0} aria-label={`The requests in ${language}`}>
        {text}
      </pre>
    </details>
  );
}
