// Facets: what the documents that are shown have in common, and filters by it.
import { optional } from '../lib/api';
import type { Field } from './fields';

/** A value of a field, and how many of the documents have it. */
export interface Value {
  readonly text: string;
  /** Undefined for a value that is filtered by, and that no document has. */
  readonly count: number | undefined;
  readonly isChosen: boolean;
}

export interface Facet {
  readonly field: string;
  readonly values: readonly Value[];
}

interface Bucket {
  readonly key: string | number;
  readonly key_as_string?: string;
  readonly doc_count: number;
}
type Aggregations = Readonly<Record<string, { readonly buckets: readonly Bucket[] }>>;

const MOST_FACETS = 6;
const MOST_VALUES = 6;
/** More fields than these are not asked for: they would make the search slow. */
const MOST_ASKED = 30;

/** The fields whose values can be counted exactly; of a text, its form as a keyword. */
export function countedFields(fields: readonly Field[]): string[] {
  return fields
    .flatMap(({ name, type, property }) => {
      if (type === 'keyword' || type === 'boolean') return [name];
      const form = Object.entries(property.fields ?? {}).find(([, inner]) => inner.type === 'keyword');
      return type === 'text' && form !== undefined ? [`${name}.${form[0]}`] : [];
    })
    .slice(0, MOST_ASKED);
}

export function facetsBody(fields: readonly string[], ids: readonly string[]): object {
  return {
    size: 0,
    query: { ids: { values: [...new Set(ids)] } },
    aggs: Object.fromEntries(fields.map((field) => [field, { terms: { field, size: MOST_VALUES } }])),
  };
}

/** Counts the values of the documents that are shown. A search by meaning finds nearly all documents of an index: these say nothing. */
export async function loadFacets(
  index: string,
  fields: readonly string[],
  ids: readonly string[],
): Promise<Aggregations> {
  if (fields.length === 0 || ids.length === 0) return {};
  const path = `/${encodeURIComponent(index)}/_search`;
  const { aggregations } = await optional<{ aggregations?: Aggregations }>({}, 'POST', path, facetsBody(fields, ids));
  return aggregations ?? {};
}

/** The facets to show: those with a value that several documents have, and whatever is filtered by. */
export function facetsOf(counted: Aggregations, filter: string): Facet[] {
  const chosen = chosenIn(filter);
  const fields = new Set([...Object.keys(counted), ...chosen.map(([field]) => field)]);
  return [...fields]
    .map((field): Facet => {
      const { buckets = [] } = (Object.hasOwn(counted, field) ? counted[field] : undefined) ?? {};
      const values = buckets.map(({ key, key_as_string: said, doc_count: count }): Value => {
        const text = said ?? String(key);
        return { text, count, isChosen: filter !== toggled(filter, field, text, false) };
      });
      const gone = chosen.filter(([name, text]) => name === field && !values.some((value) => value.text === text));
      const others = gone.map(([, text]): Value => ({ text, count: undefined, isChosen: true }));
      // What one document has alone, such as its date, narrows nothing down.
      const shared = values.filter(({ count = 0, isChosen }) => isChosen || count > 1);
      return { field, values: [...others, ...shared].slice(0, MOST_VALUES) };
    })
    .filter(({ values }) => values.some(({ count = 0, isChosen }) => isChosen || count > 1))
    .sort((a, b) => (b.values[0]?.count ?? 0) - (a.values[0]?.count ?? 0))
    .slice(0, MOST_FACETS);
}

function clauseOf(field: string, text: string): string {
  // Signs of Lucene's syntax in a name are escaped; in quotes only these two are.
  const name = field.replace(/[^\w.]/g, '\\$&');
  return `${name}:"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** A clause that a facet has made, wherever it stands between others. */
const CLAUSE = /(?:^| AND )((?:\\.|[\w.])+):"((?:\\.|[^"\\])*)"(?= AND |$)/g;

function chosenIn(filter: string): [field: string, text: string][] {
  const plain = (text: string): string => text.replace(/\\(.)/g, '$1');
  // Clauses follow each other, and each match ends before the next ` AND `.
  return [...filter.matchAll(CLAUSE)].map(([, field = '', text = '']) => [plain(field), plain(text)]);
}

/** Whether something is joined by OR that is neither in quotes nor in brackets. */
function isEither(filter: string): boolean {
  return filter
    .replace(/"(?:\\.|[^"\\])*"/g, '')
    .replace(/\([^()]*\)/g, '')
    .includes(' OR ');
}

/** A filter with a value, or without it: what somebody has typed stays as it is. */
export function toggled(filter: string, field: string, text: string, isWanted: boolean): string {
  const clause = clauseOf(field, text);
  const typed = filter.trim();
  if (isWanted) {
    if (typed === '') return clause;
    return `${isEither(typed) ? `(${typed})` : typed} AND ${clause}`;
  }
  if (typed === clause) return '';
  if (typed.startsWith(`${clause} AND `)) return typed.slice(`${clause} AND `.length);
  const at = typed.indexOf(` AND ${clause}`);
  const after = typed.slice(at + ` AND ${clause}`.length);
  return at >= 0 && (after === '' || after.startsWith(' AND ')) ? typed.slice(0, at) + after : filter;
}
