/** Orders of hits by their definition: sorted, collapsed, rescored, and ranked lists joined by retrievers. */
import { compare } from './aggregate.js';
import type { Corpus, Doc, Layout } from './corpus.js';
import { type Query, valuesOf } from './clauses.js';
import { evaluate } from './queries.js';

export interface Ranked {
  readonly doc: Doc;
  readonly corpus: Corpus;
  readonly score: number;
}

/** What a query finds, in the order of indices and of writing. */
export function matches(query: Query, { corpora }: Layout): Ranked[] {
  return corpora.flatMap((corpus) =>
    corpus.docs.flatMap((doc) => {
      const score = evaluate(query, doc, corpus);
      return score === undefined ? [] : [{ doc, corpus, score }];
    }),
  );
}

/** Best first; equal ones stay in their order. */
export const byScore = (hits: readonly Ranked[]): Ranked[] => [...hits].sort((a, b) => b.score - a.score);

/** One key of a sort. */
export interface SortKey {
  readonly field: string;
  readonly order: 'asc' | 'desc';
  readonly mode?: string;
  readonly missing?: string | number;
}

function picked(values: readonly number[], mode: string, whole: boolean): number {
  const sorted = [...values].sort((a, b) => a - b);
  const sum = values.reduce((all, value) => all + value, 0);
  const round = (value: number): number => (whole ? Math.round(value) : value);
  const middle = (sorted.length - 1) / 2;
  switch (mode) {
    case 'min':
      return sorted[0] ?? NaN;
    case 'max':
      return sorted.at(-1) ?? NaN;
    case 'sum':
      return sum;
    case 'avg':
      return round(sum / values.length);
    default:
      return round(((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2);
  }
}

/** What a document is sorted by; `undefined` comes first or last. */
function sortValue(doc: Doc, { field, order, mode, missing }: SortKey): number | string | undefined {
  const values = valuesOf(doc, field);
  if (values.length === 0) return missing === '_first' || missing === '_last' ? undefined : missing;
  const wanted = mode ?? (order === 'desc' ? 'max' : 'min');
  if (field === 'kw') {
    const sorted = values.map(String).sort(compare);
    return wanted === 'max' ? sorted.at(-1) : sorted[0];
  }
  return picked(values.map(Number), wanted, field !== 'd');
}

export function sorted(hits: readonly Ranked[], keys: readonly SortKey[]): Ranked[] {
  return [...hits].sort((a, b) => {
    for (const key of keys) {
      const [left, right] = [sortValue(a.doc, key), sortValue(b.doc, key)];
      if (left === right) continue;
      if (left === undefined || right === undefined) {
        const first = key.missing === '_first';
        return (left === undefined) === first ? -1 : 1;
      }
      const found = compare(left, right);
      if (found !== 0) return key.order === 'asc' ? found : -found;
    }
    return 0;
  });
}

/** The first hit of each value of a field, and of none. */
export function collapsed(hits: readonly Ranked[], field: string): Ranked[] {
  const seen = new Set<unknown>();
  return hits.filter(({ doc }) => {
    const [value] = valuesOf(doc, field);
    return !seen.has(value) && seen.add(value);
  });
}

/** The second pass over the first hits of each index. */
export function rescored(query: Query, rescore: Query, layout: Layout): Ranked[] {
  const { window_size: window, query: pass } = rescore as any;
  const { rescore_query: second, query_weight: first = 1, rescore_query_weight: factor = 1, score_mode: mode } = pass;
  const all = layout.corpora.flatMap((corpus) => {
    const hits = byScore(matches(query, { ...layout, corpora: [corpus] }));
    return hits.map((hit, place) => {
      const own = hit.score * first;
      const other = place < window ? evaluate(second, hit.doc, corpus) : undefined;
      if (other === undefined) return { ...hit, score: own };
      const added = other * factor;
      const joined: Record<string, number> = {
        total: own + added,
        multiply: own * added,
        avg: (own + added) / 2,
        max: Math.max(own, added),
        min: Math.min(own, added),
      };
      return { ...hit, score: joined[String(mode ?? 'total')] ?? NaN };
    });
  });
  return byScore(all);
}

/** The list that a retriever gives. `filters` are those of the retrievers around it, `window` the length of its list. */
export function retrieved(retriever: Query, layout: Layout, window: number, filters: readonly Query[] = []): Ranked[] {
  const [[kind, body] = ['', {} as Query]] = Object.entries(retriever);
  const own = [...filters, ...[body.filter ?? []].flat()] as Query[];
  const least = body.min_score ?? -Infinity;
  if (kind === 'standard') {
    const query = { bool: { must: [body.query], filter: own } };
    return byScore(matches(query, layout))
      .filter(({ score }) => score >= least)
      .slice(0, window);
  }
  if (kind === 'knn') {
    // The neighbours are those of all indices together.
    const whole: Corpus = { docs: layout.corpora.flatMap(({ docs }) => docs), exact: true };
    const knn = { knn: { ...body, filter: own } };
    return byScore(matches(knn, { ...layout, corpora: [whole] })).slice(0, window);
  }
  const length = body.rank_window_size ?? window;
  const scores = new Map<string, Ranked>();
  for (const entry of body.retrievers as Query[]) {
    const inner = entry['retriever'] ?? entry;
    const weight = Number(entry['weight'] ?? 1);
    const list = retrieved(inner, layout, length, own);
    const values = list.map(({ score }) => score);
    const [min, max] = [Math.min(...values), Math.max(...values)];
    const norm = Math.hypot(...values);
    for (const [place, hit] of list.entries()) {
      const normalized =
        kind === 'rrf'
          ? 1 / ((body.rank_constant ?? 60) + place + 1)
          : entry['normalizer'] === 'minmax'
            ? // Scores that are all equal are all the best.
              max > min
              ? (hit.score - min) / (max - min)
              : 1
            : entry['normalizer'] === 'l2_norm' && norm > 0
              ? hit.score / norm
              : hit.score;
      const known = scores.get(hit.doc.id);
      scores.set(hit.doc.id, { ...hit, score: (known?.score ?? 0) + weight * normalized });
    }
  }
  const order = layout.corpora.flatMap(({ docs }) => docs.map(({ id }) => id));
  const fused = [...scores.values()].sort((a, b) => order.indexOf(a.doc.id) - order.indexOf(b.doc.id));
  return byScore(fused)
    .filter(({ score }) => score >= least)
    .slice(0, Math.min(length, window));
}
