import { illegal, refusal, unparsable } from './errors.js';
import { isObject, members, textOf, valueOf } from './json.js';
import { type Asking, multiple, sectionOf } from './multiple.js';
import type { SearchBody } from './search-body.js';

/** Most `inner_hits` of a `collapse`; the native engine has the same. */
const MOST_LISTS = 100;

/** Searches that are sent in one request. */
const AT_ONCE = 100;

/** What of an `inner_hits` is a section of the search that finds the hits of a group. */
const SECTIONS: ReadonlySet<string> = new Set([
  ...['from', 'size', 'sort', '_source', 'fields', 'docvalue_fields', 'stored_fields', 'version'],
  ...['seq_no_primary_term', 'track_scores', 'collapse'],
]);

/** Hits of a group that are shown where the request does not say how many. */
const DEFAULT_SIZE = 3;

/** One `inner_hits` of a `collapse`. */
interface InnerHits {
  readonly name: string;
  /** The members of the `inner_hits` object that are sections of a search, each as `"name":value` in the cluster's form. */
  readonly sections: readonly string[];
}

/** The field of a `collapse`, and what is shown of its groups. */
export interface Collapse {
  readonly field: string;
  readonly innerHits: readonly InnerHits[];
}

/**
 * Reads the `collapse` of a search that fuses lists.
 *
 * @throws {EngineError} 400 for what the native engine refuses as well
 */
export function readCollapse(body: SearchBody): Collapse | undefined {
  const [value, spans] = [body.value('collapse'), body.innerHits];
  if (!isObject(value)) return undefined;
  if (spans.length > MOST_LISTS) {
    throw illegal(
      `[collapse] has [${String(spans.length)}] [inner_hits], at most [${String(MOST_LISTS)}] are possible on this server`,
    );
  }
  const innerHits = spans.map((span): InnerHits => {
    if (!isObject(valueOf(body.text, span))) throw unparsable('[inner_hits] has to be an object');
    const parts = members(body.text, span.start);
    const part = (name: string): unknown => {
      const found = parts.find((it) => it.name === name);
      return found === undefined ? undefined : valueOf(body.text, found);
    };
    const name = textOf(part('name'));
    if (name === undefined) throw illegal('inner_hits must have a [name] set for each instance in collapse context');
    const unknown = parts.find((it) => !SECTIONS.has(it.name) && !['name', 'ignore_unmapped'].includes(it.name));
    if (unknown !== undefined)
      throw refusal(400, 'x_content_parse_exception', `[inner_hits] unknown field [${unknown.name}]`);
    const second = part('collapse');
    if (isObject(second) && 'inner_hits' in second)
      throw unparsable('[inner_hits] of a [collapse] within [inner_hits] is not supported by this server');
    const sections = parts
      .filter((it) => SECTIONS.has(it.name))
      .map((it) => `${JSON.stringify(it.name)}:${body.piece(it)}`);
    return { name, sections: part('size') === undefined ? [...sections, `"size":${String(DEFAULT_SIZE)}`] : sections };
  });
  const names = innerHits.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw illegal(`[inner_hits] already contains an entry for key [${twice}]`);
  return { field: textOf(value['field']) ?? '', innerHits };
}

/**
 * Finds the hits of groups.
 *
 * @param query that finds all documents of the search
 * @param groups the value that each group has in common; undefined where its documents have none
 * @returns the `inner_hits` of each group, as JSON
 */
export async function hitsOfGroups(
  asking: Asking,
  body: SearchBody,
  { field, innerHits }: Collapse,
  query: string,
  groups: readonly unknown[],
): Promise<readonly string[]> {
  const filter = body.section('post_filter');
  const searches = groups.flatMap((value) => {
    const group = value === undefined ? { bool: { must_not: { exists: { field } } } } : { term: { [field]: value } };
    const asked = [
      `"query":{"bool":{"must":[${query}],"filter":[${JSON.stringify(group)}]}}`,
      ...(filter === undefined ? [] : [`"post_filter":${filter}`]),
      '"track_total_hits":true',
    ];
    return innerHits.map(({ sections }) => `{${[...asked, ...sections].join(',')}}`);
  });
  const answers: string[] = [];
  for (let at = 0; at < searches.length; at += AT_ONCE)
    answers.push(...(await multiple(asking, searches.slice(at, at + AT_ONCE))));
  return groups.map((_, at) => {
    const own = innerHits.map(({ name }, number) => {
      const found = sectionOf(answers[at * innerHits.length + number] ?? '', 'hits') ?? '{}';
      return `${JSON.stringify(name)}:{"hits":${found}}`;
    });
    return `{${own.join(',')}}`;
  });
}
