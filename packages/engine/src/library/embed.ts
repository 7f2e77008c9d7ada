import { refuseUnknown } from './arguments.js';
import type { CallOptions, Caller } from './caller.js';
import { SparrowError } from './error.js';

/** A learned sparse vector: the weight of each token, always above 0. The dot product of two of them is their similarity. */
export type SparseVector = Readonly<Record<string, number>>;

/** A dense vector: one number for each dimension of the model. */
export type DenseVector = readonly number[];

/** Which model encodes texts, and how. */
export interface EmbedOptions extends CallOptions {
  /**
   * `sparse` (the default) and `dense` are the embedded models, SPLADE with 30,522 terms and all-MiniLM-L6-v2 with 384 dimensions;
   * anything else is the id of an inference endpoint, or of a model in the folder `models`, which is deployed if it is not yet.
   */
  readonly model?: string;
  /** What the texts are: most models do not care, some encode a `search` otherwise than a `document` (the default). */
  readonly as?: 'document' | 'search';
  /** Called with the place of each text of which the model did not read the end: the embedded ones read 512 tokens. */
  readonly onTruncated?: (n: number) => void;
}

const OPTIONS: Readonly<Record<keyof EmbedOptions, true>> = { model: true, as: true, onTruncated: true, signal: true };

/** The inference endpoints of the embedded models, which are always there. */
const ENDPOINTS: Readonly<Record<string, string>> = {
  sparse: '.elser-2-elasticsearch',
  dense: '.all-minilm-l6-v2-elasticsearch',
};

/** Texts that are encoded in one call: enough to keep all cores at work, few enough to stop soon. */
const TEXTS = 256;

/** How long one call may take. Its end is the caller's affair: there is a signal. */
const TIMEOUT = '1h';

interface Inferred {
  readonly sparse_embedding?: readonly { readonly is_truncated: boolean; readonly embedding: SparseVector }[];
  readonly text_embedding?: readonly { readonly embedding: DenseVector }[];
}

interface ModelInferred {
  readonly inference_results: readonly {
    readonly predicted_value: SparseVector | DenseVector;
    readonly is_truncated?: boolean;
  }[];
}

/** Encodes texts, some hundred at a time; the vectors come in the order of the texts. */
export async function embed(
  caller: Caller,
  texts: readonly string[],
  options: EmbedOptions,
): Promise<(SparseVector | DenseVector)[]> {
  refuseUnknown('embed', options, OPTIONS);
  // The characters of a single text would be encoded one by one.
  if (!Array.isArray(texts)) throw new TypeError('embed takes an array of texts');
  const vectors: (SparseVector | DenseVector)[] = [];
  for (let at = 0; at < texts.length; at += TEXTS) {
    for (const { vector, truncated } of await encode(caller, texts.slice(at, at + TEXTS), options)) {
      if (truncated) options.onTruncated?.(vectors.length);
      vectors.push(vector);
    }
  }
  return vectors;
}

interface Encoded {
  readonly vector: SparseVector | DenseVector;
  readonly truncated: boolean;
}

async function encode(caller: Caller, input: readonly string[], options: EmbedOptions): Promise<Encoded[]> {
  const { model = 'sparse', as = 'document', signal } = options;
  const endpoint = ENDPOINTS[model] ?? model;
  try {
    const answer = await caller.call<Inferred>('infer', {
      path: { inference_id: endpoint },
      query: { timeout: TIMEOUT },
      body: { input, input_type: as === 'search' ? 'search' : 'ingest' },
      signal,
    });
    const sparse = answer.sparse_embedding?.map(({ embedding, is_truncated: truncated }) => ({
      vector: embedding,
      truncated,
    }));
    return sparse ?? (answer.text_embedding ?? []).map(({ embedding }) => ({ vector: embedding, truncated: false }));
  } catch (error) {
    const isNoEndpoint = error instanceof SparrowError && error.status === 404 && model === endpoint;
    if (!isNoEndpoint) throw error;
    return encodeWithModel(caller, endpoint, input, signal);
  }
}

async function encodeWithModel(
  caller: Caller,
  model: string,
  input: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Encoded[]> {
  const path = { model };
  const infer = (): Promise<ModelInferred> =>
    caller.call('infer_trained_model', {
      path,
      query: { timeout: TIMEOUT },
      body: { docs: input.map((text) => ({ text_field: text })) },
      signal,
    });
  let answer;
  try {
    answer = await infer();
  } catch (error) {
    if (!(error instanceof SparrowError) || error.status !== 409) throw error;
    // Known, but not at work.
    await caller.call('start_deployment', { path, query: { wait_for: 'started' }, signal });
    answer = await infer();
  }
  return answer.inference_results.map(({ predicted_value: vector, is_truncated: truncated = false }) => ({
    vector,
    truncated,
  }));
}
