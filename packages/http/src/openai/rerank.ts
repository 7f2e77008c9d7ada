import { type Answer, json } from '../exchange/respond.js';
import { isObject } from '../security/request-body.js';
import type { Ask } from './ask.js';
import { anyText, kindOf, positive, readBody, requiredText } from './body.js';
import { refused } from './errors.js';
import { type Chosen, choose } from './models.js';

/** Most texts of one request: those of an inference request. */
const MOST_TEXTS = 1024;

const KNOWN = ['model', 'query', 'documents', 'top_n', 'return_documents'];

/** What Cohere's interface has besides. */
const NOT_HERE: Readonly<Record<string, string>> = {
  rank_fields: 'documents have one text here; put the fields that count into it',
  max_chunks_per_doc: 'a document is not divided: what is too long for the model is left out at its end',
  max_tokens_per_doc: 'the model decides how much it reads of a document',
};

interface Entry {
  readonly index: number;
  readonly score: number;
}

/**
 * Answers `POST /v1/rerank` and `POST /v2/rerank`: the documents that answer a question best, in Cohere's and Jina's form.
 *
 * @param id the number of the request
 * @param version that of Cohere's interface
 * @throws {HttpError} 400 for a request that makes no sense, 404 for a model that there is not
 */
export async function rerank(
  ask: Ask,
  bytes: Uint8Array | undefined,
  { id, version }: { readonly id: string; readonly version: string },
): Promise<Answer> {
  const body = readBody(bytes, KNOWN, NOT_HERE);
  const model = requiredText(body, 'model');
  const query = requiredText(body, 'query');
  const texts = textsOf(body['documents']);
  const most = body['top_n'] === undefined ? undefined : positive(body['top_n'], 'top_n');
  const showsTexts = body['return_documents'] ?? false;
  if (typeof showsTexts !== 'boolean') throw refused('return_documents', 'one of [true, false] is expected');
  const { entries, tokens } = await score(ask, await choose(ask, model, 'rerank'), query, texts, most);
  const results = entries.map(({ index, score: number }) => ({
    index,
    relevance_score: relevance(number),
    ...(showsTexts ? { document: { text: texts[index] } } : {}),
  }));
  // Jina's form, and Cohere's.
  const usage = { total_tokens: tokens };
  return json(200, { id, model, results, usage, meta: { api_version: { version }, tokens: { input_tokens: tokens } } });
}

function textsOf(documents: unknown): readonly string[] {
  if (documents === undefined) throw refused('documents', 'this parameter is required');
  if (!Array.isArray(documents)) throw refused('documents', `a list is expected, not ${kindOf(documents)}`);
  if (documents.length === 0) throw refused('documents', 'the list is empty');
  if (documents.length > MOST_TEXTS) {
    const number = String(documents.length);
    throw refused('documents', `the list has [${number}] documents, at most [${String(MOST_TEXTS)}] are taken`);
  }
  return documents.map((document: unknown, at) => {
    const param = `documents[${String(at)}]`;
    if (!isObject(document)) return anyText(document, param);
    const other = Object.keys(document).find((name) => name !== 'text');
    if (other !== undefined) throw refused(`${param}.${other}`, 'only [text] is read of a document');
    return anyText(document['text'], `${param}.text`);
  });
}

/** Scores texts as inference requests of Elasticsearch's interface are answered, the best first. */
async function score(
  ask: Ask,
  { name, endpoint, config }: Chosen,
  query: string,
  texts: readonly string[],
  most: number | undefined,
): Promise<{ readonly entries: readonly Entry[]; readonly tokens: number }> {
  if (endpoint !== undefined) {
    const asked = { query, input: texts, return_documents: false, ...(most === undefined ? {} : { top_n: most }) };
    const { rerank: ranked, tokens } = await ask('infer', { path: { inference_id: endpoint }, body: asked });
    const scored = ranked as readonly { readonly index: number; readonly relevance_score: number }[];
    return { entries: scored.map(({ index, relevance_score: number }) => ({ index, score: number })), tokens };
  }
  const field = config?.input?.field_names?.[0] ?? 'text_field';
  const docs = texts.map((text) => ({ [field]: text }));
  const { inference_results: scored, tokens } = await ask('infer_trained_model', {
    path: { model: name },
    body: { docs, inference_config: { text_similarity: { text: query, results_field: 'score' } } },
  });
  const entries = (scored as readonly { readonly score: number }[])
    .map(({ score: number }, index) => ({ index, score: number }))
    .sort((a, b) => b.score - a.score)
    .slice(0, most);
  return { entries, tokens };
}

/** What a model computes, from 0 to 1 as these clients expect it. The order stays. */
function relevance(number: number): number {
  return 1 / (1 + Math.exp(-number));
}
