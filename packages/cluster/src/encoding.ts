import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { isObject } from './json.js';
import type { Text, Tokens } from './queries.js';

/**
 * Texts as tokens with weights: those of a request that go to the same model are read in one call.
 *
 * @throws {EngineError} what the native engine says of a model that is not there or not deployed
 */
export async function encode(
  native: SearchEngine,
  texts: readonly Text[],
  cancel?: Cancel,
): Promise<(text: Text) => Tokens> {
  const byModel = new Map<string, { kind: Text['kind']; id: string; texts: Set<string> }>();
  for (const { kind, id, text } of texts) {
    const key = `${kind}:${id}`;
    const group = byModel.get(key) ?? { kind, id, texts: new Set<string>() };
    byModel.set(key, group);
    group.texts.add(text);
  }
  const found = new Map<string, Tokens>();
  await Promise.all(
    [...byModel].map(async ([key, group]) => {
      const distinct = [...group.texts];
      const vectors = await (group.kind === 'model' ? byName : byEndpoint)(native, group.id, distinct, cancel);
      distinct.forEach((text, at) => found.set(`${key}:${text}`, vectors[at] ?? {}));
    }),
  );
  return ({ kind, id, text }) => found.get(`${kind}:${id}:${text}`) ?? {};
}

async function byName(
  native: SearchEngine,
  model: string,
  texts: readonly string[],
  cancel?: Cancel,
): Promise<readonly Tokens[]> {
  const body = { docs: texts.map((text) => ({ text_field: text })) };
  const results = await ask(native, 'infer_trained_model', { model }, body, cancel);
  return listIn(results, 'inference_results').map((it) => (isObject(it) ? (it['predicted_value'] as Tokens) : {}));
}

async function byEndpoint(
  native: SearchEngine,
  id: string,
  texts: readonly string[],
  cancel?: Cancel,
): Promise<readonly Tokens[]> {
  const path = { inference_id: id, task_type: 'sparse_embedding' };
  const results = await ask(native, 'infer', path, { input: texts }, cancel);
  return listIn(results, 'sparse_embedding').map((it) => (isObject(it) ? (it['embedding'] as Tokens) : {}));
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
