import { notOverCluster } from './errors.js';
import { type Span, isObject, members, textOf, valueOf, without } from './json.js';
import { type Product, hasWholeCosines } from './product.js';

/** A function of scripts that compares a vector with that of a document. */
const CALL =
  /\b(cosineSimilarity|dotProduct|l1norm|l2norm)\s*\(\s*(?:params\.(\w+)|params\[\s*(['"])([^'"]+)\3\s*\]|(\[[^[\]]*\]))\s*,\s*(['"])([^'"]+)\6\s*\)/gu;

/** How OpenSearch's own script compares, and how the result of the function follows from its score. */
const FUNCTIONS: Readonly<Record<string, { readonly space: string; readonly result: string }>> = {
  cosineSimilarity: { space: 'cosinesimil', result: '(2.0 * _score - 1.0)' },
  dotProduct: { space: 'innerproduct', result: '(_score >= 1.0 ? _score - 1.0 : 1.0 - 1.0 / _score)' },
  l1norm: { space: 'l1', result: '(1.0 / _score - 1.0)' },
  l2norm: { space: 'l2', result: 'Math.sqrt(1.0 / _score - 1.0)' },
};

/**
 * A `script_score` whose script compares vectors, as OpenSearch has it: its `knn_score` compares, and a script around it does the rest.
 *
 * @param product the OpenSearch whose script it is
 * @param span of the parameters of the clause
 * @param piece gives a piece of the text in the cluster's form
 * @returns what makes its parameters; undefined where the script compares no vectors, and is the cluster's business
 * @throws {EngineError} 400 for scripts that compare several vectors, or need another score beside
 */
export function scriptScore(
  product: Product,
  text: string,
  span: Span,
  piece: (span: Span) => string,
): (() => string) | undefined {
  const parts = members(text, span.start);
  const query = parts.find(({ name }) => name === 'query');
  const part = parts.find(({ name }) => name === 'script');
  const script: unknown = part === undefined ? undefined : valueOf(text, part);
  const source = isObject(script) ? textOf(script['source']) : textOf(script);
  if (query === undefined || part === undefined || source === undefined) return undefined;
  const calls = [...source.matchAll(CALL)];
  const [first] = calls;
  if (first === undefined) return undefined;
  const several = calls.some(([call]) => call.replaceAll(/\s/gu, '') !== first[0].replaceAll(/\s/gu, ''));
  if (several) throw notOverCluster('a script that compares more than one vector');
  if (/\b_score\b/u.test(source)) throw notOverCluster('a script that compares vectors and uses [_score]');
  const [, name = '', dotted, , bracketed, list, , field = ''] = first;
  const params = isObject(script) && isObject(script['params']) ? script['params'] : {};
  const parameter = dotted ?? bracketed ?? '';
  const vector: unknown = list === undefined ? params[parameter] : numbersIn(list);
  const { space, result: score } = FUNCTIONS[name] ?? { space: '', result: '' };
  const result = space === 'cosinesimil' && hasWholeCosines(product) ? '(_score - 1.0)' : score;
  const comparison = {
    lang: 'knn',
    source: 'knn_score',
    params: { field, query_value: vector, space_type: space },
  };
  const around = { source: source.replaceAll(CALL, result), params: without(params, parameter) };
  return () => {
    const compared = `{"script_score":{"query":${piece(query)},"script":${JSON.stringify(comparison)}}}`;
    const others = parts.filter((it) => it.name !== 'query' && it.name !== 'script');
    const rest = others.map((it) => `,${JSON.stringify(it.name)}:${piece(it)}`).join('');
    return `{"query":${compared},"script":${JSON.stringify(around)}${rest}}`;
  };
}

function numbersIn(list: string): unknown {
  try {
    return JSON.parse(list);
  } catch {
    throw notOverCluster(`the vector ${list.slice(0, 50)} in a script`, 'give it as a parameter');
  }
}
