import type { Cancel, Ranked, SearchEngine } from '@sparrow-search/engine';

import { illegal } from './errors.js';
import { isObject, parseAnswer, textOf } from './json.js';
import { type Asking, multiple } from './multiple.js';
import { keyOf, theseOf } from './ranked-hits.js';
import { type Fusion, type Node, type Rerank, MAX_WINDOW } from './retrievers.js';
import { askNative } from './semantic-fields.js';

/** How many texts are in memory at the same time. */
const PORTION = 64;

/**
 * A tree of lists whose rerankers name the inference endpoints that they use, and read no further than these rank.
 *
 * @throws {EngineError} 400 and 404 for an endpoint that is not there, does not rerank, or ranks fewer texts than are asked for
 */
export async function withEndpoints(native: SearchEngine, fusion: Fusion): Promise<Fusion> {
  if (!rerankersIn(fusion)) return fusion;
  const inputs = await Promise.all(
    fusion.inputs.map(async (input) => ({
      ...input,
      node: input.node.kind === 'leaf' ? input.node : await withEndpoints(native, input.node),
    })),
  );
  const { rerank, window } = fusion;
  if (rerank === undefined) return { ...fusion, inputs };
  const id = rerank.id === '' ? await onlyReranker(native) : rerank.id;
  const most = await mostTexts(native, id);
  if (most !== undefined && most < window.size) {
    throw illegal(
      `inference endpoint [${id}] is configured to return the top [${String(most)}] results, but rank_window_size is ` +
        `[${String(window.size)}]. Reduce rank_window_size to be less than or equal to the configured top N value.`,
    );
  }
  // A section that the native engine cannot read is refused before any list is searched.
  if (rerank.chunks !== undefined) await scoresOf(native, { ...rerank, id }, []);
  // What the endpoint does not rank comes back on no later page either.
  const capped = { ...window, most: Math.min(most ?? MAX_WINDOW, MAX_WINDOW) };
  return { ...fusion, inputs, rerank: { ...rerank, id }, window: capped };
}

function rerankersIn(node: Node): boolean {
  return node.kind === 'fused' && (node.rerank !== undefined || node.inputs.some((input) => rerankersIn(input.node)));
}

interface Endpoint {
  readonly inference_id: string;
  readonly task_type: string;
  readonly task_settings?: { readonly top_n?: number };
}

async function endpoints(native: SearchEngine, path: Readonly<Record<string, string>>): Promise<readonly Endpoint[]> {
  const { body } = await native.execute({ op: 'get_inference', path, query: {} });
  return (JSON.parse(Buffer.from(body).toString()) as { readonly endpoints: readonly Endpoint[] }).endpoints;
}

async function onlyReranker(native: SearchEngine): Promise<string> {
  const all = (await endpoints(native, {})).filter(({ task_type: task }) => task === 'rerank');
  const [only, second] = all;
  if (only === undefined) {
    const advice = 'create one with PUT /_inference/rerank/{inference_id}';
    throw illegal(`[inference_id] is missing, and no inference endpoint reranks; ${advice}`);
  }
  if (second === undefined) return only.inference_id;
  const ids = all.map(({ inference_id: id }) => id).join(', ');
  throw illegal(`[inference_id] is missing, and several inference endpoints rerank: [${ids}]`);
}

/** The most texts that an endpoint ranks; undefined where it says none. */
async function mostTexts(native: SearchEngine, id: string): Promise<number | undefined> {
  const [found] = await endpoints(native, { inference_id: id });
  const { task_type: task, task_settings: settings } = found ?? {};
  if (task === 'rerank') return settings?.top_n;
  const made = task === 'sparse_embedding' ? 'sparse' : task === 'text_embedding' ? 'dense' : 'sparse and dense';
  throw illegal(`model [${id}] makes ${made} vectors and cannot be used for the task [rerank]`);
}

/** What gives the scores of a reranker's model to documents, whose texts are read a portion at a time. */
export function modelScores(
  native: SearchEngine,
  asking: Asking,
  cancel?: Cancel,
): (rerank: Rerank, hits: readonly Ranked[]) => Promise<readonly number[]> {
  return async (rerank, hits) => {
    const scores: number[] = [];
    for (let at = 0; at < hits.length; at += PORTION) {
      const texts = await textsOf(asking, rerank.field, hits.slice(at, at + PORTION));
      scores.push(...(await scoresOf(native, rerank, texts, cancel)));
    }
    return scores;
  };
}

/** The scores of texts, of which the native engine chooses the parts that the model reads. */
async function scoresOf(
  native: SearchEngine,
  { id, text, field, chunks }: Rerank,
  texts: readonly string[],
  cancel?: Cancel,
): Promise<readonly number[]> {
  const own = { inference_id: id, inference_text: text, field, chunk_rescorer: chunks };
  const retriever = { text_similarity_reranker: { ...own, retriever: { standard: {} } } };
  const answer = await askNative(native, 'score_texts', { retriever, texts }, cancel);
  return (JSON.parse(answer) as { readonly scores: readonly number[] }).scores;
}

/** The first value that the field of each document has as a text; an empty one where it has none. */
async function textsOf(asking: Asking, field: string, hits: readonly Ranked[]): Promise<readonly string[]> {
  const { filter, most } = theseOf(hits);
  const search = {
    query: { bool: { filter } },
    ...{ size: most, track_total_hits: false, _source: [field], fields: [field] },
  };
  const [answer = ''] = await multiple(asking, [JSON.stringify(search)]);
  const { hits: found } = parseAnswer(answer) as { hits: { hits: readonly Found[] } };
  const texts = new Map(
    found.hits.map(({ _index, _id, _source, fields }) => {
      // A cluster knows where the values of a sub-field come from; of a field that is not mapped it knows nothing.
      const first = scalarAt(fields?.[field], []) ?? scalarAt(_source, field.split('.'));
      return [keyOf(_index, _id), first ?? ''];
    }),
  );
  return hits.map(({ key }) => texts.get(key) ?? '');
}

interface Found {
  readonly _index: string;
  readonly _id: string;
  readonly _source?: unknown;
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
}

/** The first scalar at a path as a text; names on it may hold dots. */
function scalarAt(value: unknown, path: readonly string[]): string | undefined {
  if (Array.isArray(value)) return firstOf(value, (it) => scalarAt(it, path));
  if (path.length === 0) return textOf(value);
  if (!isObject(value)) return undefined;
  return firstOf([...path.keys()], (at) => scalarAt(value[path.slice(0, at + 1).join('.')], path.slice(at + 1)));
}

function firstOf<T>(all: readonly T[], find: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const found = find(one);
    if (found !== undefined) return found;
  }
  return undefined;
}
