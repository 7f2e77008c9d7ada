import type { Answer } from '../exchange/respond.js';
import type { Ask } from './ask.js';
import { kindOf, positive, readBody, requiredText, textOf } from './body.js';
import { refused } from './errors.js';
import { type Chosen, type Config, choose } from './models.js';

/** Most texts of one request, as at OpenAI. */
const MOST_TEXTS = 2048;

/**
 * Texts that the engine encodes at once. Their vectors are read and written on the event loop, so that there are few; and a request of
 * many texts leaves room in the queue for others.
 */
const TEXTS_AT_ONCE = 32;

const KNOWN = ['input', 'model', 'encoding_format', 'dimensions', 'user'];

interface Asked {
  readonly texts: readonly string[];
  readonly model: string;
  readonly inBase64: boolean;
  readonly dimensions: number | undefined;
}

/**
 * Answers `POST /v1/embeddings`: vectors of texts, in OpenAI's form.
 *
 * @throws {HttpError} 400 for a request that makes no sense, 404 for a model that there is not
 */
export async function embeddings(ask: Ask, body: Uint8Array | undefined): Promise<Answer> {
  const { texts, model, inBase64, dimensions } = parse(body);
  const chosen = await choose(ask, model, 'text_embedding');
  const cut = dimensions === undefined ? whole : cutTo(chosen, dimensions);
  const parts: string[] = [];
  let read = 0;
  for (let begin = 0; begin < texts.length; begin += TEXTS_AT_ONCE) {
    const { vectors, tokens } = await encode(ask, chosen, texts.slice(begin, begin + TEXTS_AT_ONCE));
    read += tokens;
    for (const vector of vectors) {
      const short = cut(vector);
      const written = inBase64 ? base64(short) : short;
      parts.push(JSON.stringify({ object: 'embedding', index: parts.length, embedding: written }));
    }
  }
  const rest = JSON.stringify({ model, usage: { prompt_tokens: read, total_tokens: read } }).slice(1);
  return { status: 200, body: `{"object":"list","data":[${parts.join(',')}],${rest}` };
}

function parse(bytes: Uint8Array | undefined): Asked {
  const body = readBody(bytes, KNOWN);
  const model = requiredText(body, 'model');
  const format = body['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw refused('encoding_format', 'one of [float, base64] is expected');
  }
  // Who asks is a matter of the key.
  if (body['user'] !== undefined) textOf(body['user'], 'user');
  const dimensions = body['dimensions'] === undefined ? undefined : positive(body['dimensions'], 'dimensions');
  return { texts: textsOf(body['input']), model, inBase64: format === 'base64', dimensions };
}

function textsOf(input: unknown): readonly string[] {
  if (input === undefined) throw refused('input', 'this parameter is required');
  if (!Array.isArray(input)) return [textOf(input, 'input')];
  if (input.length === 0) throw refused('input', 'the list is empty');
  if (input.length > MOST_TEXTS) {
    throw refused('input', `the list has [${String(input.length)}] texts, at most [${String(MOST_TEXTS)}] are taken`);
  }
  const numbers = input.findIndex((one) => typeof one === 'number' || Array.isArray(one));
  if (numbers >= 0) {
    const kind = kindOf(input[numbers]);
    throw refused('input', `texts are expected, not ${kind}: the numbers of tokens mean something else to each model`);
  }
  return input.map((text, at) => textOf(text, `input[${String(at)}]`));
}

type Vector = readonly number[];

interface Vectors {
  readonly vectors: readonly Vector[];
  /** Tokens that the model has read, special ones included. */
  readonly tokens: number;
}

/** Encodes texts as inference requests of Elasticsearch's interface are encoded. */
async function encode(ask: Ask, { name, endpoint, config }: Chosen, texts: readonly string[]): Promise<Vectors> {
  if (endpoint !== undefined) {
    const { text_embedding: encoded, tokens } = await ask('infer', {
      path: { inference_id: endpoint },
      body: { input: texts },
    });
    return {
      vectors: (encoded as readonly { readonly embedding: Vector }[]).map(({ embedding }) => embedding),
      tokens,
    };
  }
  const field = config?.input?.field_names?.[0] ?? 'text_field';
  const docs = texts.map((text) => ({ [field]: text }));
  const { inference_results: encoded, tokens } = await ask('infer_trained_model', {
    path: { model: name },
    body: { docs, inference_config: { text_embedding: { results_field: 'vector' } } },
  });
  return { vectors: (encoded as readonly { readonly vector: Vector }[]).map(({ vector }) => vector), tokens };
}

function whole(vector: Vector): Vector {
  return vector;
}

/**
 * What makes vectors of so many numbers of those of a model: only one that was trained for that has its meaning in the first numbers.
 *
 * @throws {HttpError} 400 for a model of which nobody says so, and for a length that it does not have
 */
function cutTo({ name, config }: Chosen, dimensions: number): (vector: Vector) => Vector {
  const { metadata = {}, inference_config: kinds } = config ?? ({} as Partial<Config>);
  const own = kinds?.['text_embedding']?.embedding_size;
  if (dimensions === own) return whole;
  const lengths = metadata['matryoshka_dimensions'];
  const some: readonly unknown[] = Array.isArray(lengths) ? lengths : [];
  if (own === undefined || dimensions > own || !(some.includes(dimensions) || metadata['is_matryoshka'] === true)) {
    const said = [...some, own].filter((length) => typeof length === 'number' && length <= (own ?? 0));
    throw refused('dimensions', `the model [${name}] makes vectors of [${said.join(', ')}] numbers`);
  }
  const { normalized } = (metadata['recognised'] ?? {}) as { readonly normalized?: boolean };
  return (vector) => {
    const short = vector.slice(0, dimensions);
    const length = normalized === true ? Math.hypot(...short) : 1;
    return length === 0 ? short : short.map((number) => Math.fround(number / length));
  };
}

/** Numbers of 32 bits, the lowest byte first, as OpenAI's clients read them. */
function base64(vector: Vector): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((number, at) => bytes.writeFloatLE(number, at * 4));
  return bytes.toString('base64');
}
