import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { illegal } from './errors.js';
import { type Json, isObject, textOf } from './json.js';
import type { Encoded, Text } from './queries.js';
import type { Tokens } from './sparse-queries.js';

/** What endpoints are asked to make of texts, and what their answers call it. */
const TASKS = { tokens: 'sparse_embedding', vector: 'text_embedding' } as const;

/** What a model makes of a text. */
type Made = Tokens | readonly number[];

/**
 * Texts as tokens with weights or as dense vectors: those of a request that go to the same model are read in one call.
 *
 * @throws {EngineError} what the native engine says of a model that is not there or not deployed; 400 for one that makes something else
 */
export async function encode(native: SearchEngine, texts: readonly Text[], cancel?: Cancel): Promise<Encoded> {
  const byModel = new Map<string, Pick<Text, 'id' | 'wants'> & { texts: Set<string> }>();
  for (const { id, wants, text } of texts) {
    const key = `${wants}:${id}`;
    const group = byModel.get(key) ?? { id, wants, texts: new Set<string>() };
    byModel.set(key, group);
    group.texts.add(text);
  }
  const found = new Map<string, Made>();
  await Promise.all(
    [...byModel].map(async ([key, group]) => {
      const distinct = [...group.texts];
      const made = await byName(native, group, distinct, cancel);
      distinct.forEach((text, at) => {
        const one = made[at];
        if (Array.isArray(one) !== (group.wants === 'vector')) {
          const what = group.wants === 'vector' ? 'dense vectors' : 'tokens with weights';
          throw illegal(`model [${group.id}] does not make ${what} of texts`);
        }
        found.set(`${key}:${text}`, one ?? {});
      });
    }),
  );
  const of = ({ id, wants, text }: Text): Made => found.get(`${wants}:${id}:${text}`) ?? {};
  return { tokens: (text) => of(text) as Tokens, vector: (text) => of(text) as readonly number[] };
}

/**
 * Models are named by their own names or by those of endpoints, in every clause. For dense vectors, an endpoint is asked wherever there is one:
 * only it says that the text is a question, which some models read with other words before it than a document.
 */
async function byName(
  native: SearchEngine,
  { id, wants }: Pick<Text, 'id' | 'wants'>,
  texts: readonly string[],
  cancel?: Cancel,
): Promise<readonly Made[]> {
  const endpoint = await endpointOf(native, id, wants);
  if (endpoint !== undefined) return byEndpoint(native, { id: endpoint, wants }, texts, cancel);
  const body = { docs: texts.map((text) => ({ text_field: text })) };
  const results = await ask(native, 'infer_trained_model', { model: id }, body, cancel);
  return listIn(results, 'inference_results').map((it) => (isObject(it) ? (it['predicted_value'] as Made) : {}));
}

/** Endpoints as an engine told them last. It is asked each time, and tells the same as long as none is changed. */
const told = new WeakMap<SearchEngine, { readonly bytes: Uint8Array; readonly endpoints: readonly Json[] }>();

async function endpointsOf(native: SearchEngine): Promise<readonly Json[]> {
  const { body } = await native.execute({ op: 'get_inference', path: {}, query: {} });
  const known = told.get(native);
  if (known !== undefined && Buffer.compare(known.bytes, body) === 0) return known.endpoints;
  const endpoints = listIn(JSON.parse(Buffer.from(body).toString()) as unknown, 'endpoints').filter(isObject);
  told.set(native, { bytes: body, endpoints });
  return endpoints;
}

async function endpointOf(native: SearchEngine, id: string, wants: Text['wants']): Promise<string | undefined> {
  const endpoints = await endpointsOf(native);
  const modelOf = ({ service_settings: settings }: Json): unknown =>
    isObject(settings) ? settings['model_id'] : undefined;
  const found =
    endpoints.find((it) => it['inference_id'] === id) ??
    endpoints.find((it) => wants === 'vector' && it['task_type'] === TASKS.vector && modelOf(it) === id);
  return found === undefined ? undefined : textOf(found['inference_id']);
}

async function byEndpoint(
  native: SearchEngine,
  { id, wants }: Pick<Text, 'id' | 'wants'>,
  texts: readonly string[],
  cancel?: Cancel,
): Promise<readonly Made[]> {
  const body = { input: texts, input_type: 'search' };
  const task = TASKS[wants];
  const results = await ask(native, 'infer', { inference_id: id, task_type: task }, body, cancel);
  return listIn(results, task).map((it) => (isObject(it) ? (it['embedding'] as Made) : {}));
}

async function ask(
  native: SearchEngine,
  op: 'infer_trained_model' | 'infer',
  path: Readonly<Record<string, string>>,
  body: object,
  cancel?: Cancel,
): Promise<unknown> {
  const reply = await native.execute({ op, path, query: {} }, Buffer.from(JSON.stringify(body)), cancel);
  return JSON.parse(Buffer.from(reply.body).toString()) as unknown;
}

function listIn(answer: unknown, name: string): readonly unknown[] {
  const list = isObject(answer) ? answer[name] : undefined;
  return Array.isArray(list) ? list : [];
}
