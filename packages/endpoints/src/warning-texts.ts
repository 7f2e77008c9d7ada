// Reads `Warning` headers, for the command line and the console. It has no imports, as it runs in browsers too.

const TEXT = /\b299 \S+ "((?:\\.|[^"\\])*)"/g;

/** The sentences of a `Warning` header, of which several are joined by commas. */
export function warningTexts(header: string | null): string[] {
  return [...(header ?? '').matchAll(TEXT)].map(([, text = '']) => {
    const plain = text.replace(/\\(.)/g, '$1');
    // Letters that no header can hold; an ASCII letter stands for itself, the percent sign too.
    return plain.replace(/(?:%[89A-F][\dA-F])+/gi, (escaped) => {
      try {
        return decodeURIComponent(escaped);
      } catch {
        return escaped;
      }
    });
  });
}
