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
  return parseAllDocuments(text, { uniqueKeys: false, logLevel: 'silent' })
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
