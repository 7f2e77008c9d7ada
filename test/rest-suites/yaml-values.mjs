// Values of a suite's YAML, kept so that they go over the wire as they were written.
import { parseAllDocuments, visit } from 'yaml';

/** A number that JavaScript would write in another way: `1.0`, or an integer beyond 2^53. */
export class NumberLiteral {
  constructor(source) {
    this.source = source;
  }

  valueOf() {
    return Number(this.source);
  }
}

/** The documents of a YAML file as plain values; throws what the parser found wrong. */
export function parseYaml(text) {
  const parse = (written) => parseAllDocuments(written, { uniqueKeys: false, logLevel: 'silent' });
  let documents = parse(unfolded(text));
  if (documents.some(({ errors }) => errors.length > 0)) documents = parse(unfolded(inOneLine(text)));
  return documents
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      visit(document, {
        Scalar(key, node) {
          if (key === 'key' || typeof node.value !== 'number' || String(node.value) === node.source) return;
          if (/^[-+]?\d+(\.\d+)?$/.test(node.source ?? ''))
            node.value = new NumberLiteral(node.source.replace('+', ''));
        },
      });
      return document.toJS();
    })
    .filter((value) => value !== null);
}

/** Collections in brackets that begin at the end of a line, each in one line: their lines may be as far left as their key. */
function inOneLine(text) {
  const lines = [];
  let depth = 0;
  for (const written of text.split('\n')) {
    const line = depth > 0 ? written.replace(/ # .*$/, '') : written;
    const brackets = line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, '');
    if (depth > 0) lines[lines.length - 1] += ` ${line.trim()}`;
    else lines.push(line);
    if (depth > 0 || /: [[{]\s*$/.test(line)) {
      depth += (brackets.match(/[[{]/g)?.length ?? 0) - (brackets.match(/[\]}]/g)?.length ?? 0);
    }
  }
  return lines.join('\n');
}

/** Quoted texts that go on in the next line in one line, and closing brackets as far right as this parser wants them. */
function unfolded(text) {
  const closing = /^[ \t]*([}\]][}\] \t]*)$/gm;
  return text.replace(closing, `${' '.repeat(60)}$1`).replace(/^(\s*- "[^"\n]*)\n\s*([^"\n]*"\s*)$/gm, '$1 $2');
}

/** JSON of a value of a suite. */
export function stringify(value) {
  if (value instanceof NumberLiteral) return value.source;
  if (Array.isArray(value)) return `[${value.map(stringify).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${stringify(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}
