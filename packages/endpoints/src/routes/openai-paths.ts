/** The paths that OpenAI's, Cohere's and Jina's clients call. Their refusals have another form than those of Elasticsearch. */
const PATHS = /^\/v[12](?:\/|$)/;

/** Whether a path is one of these; an index that is called `v1` is not, as its route begins with a parameter. */
export function isOpenAiPath(path: string): boolean {
  return PATHS.test(path);
}

/** The path of text-embeddings-inference. Its refusals have a form of their own. */
export const SPARSE_PATH = '/embed_sparse';

/** Longest body, in bytes: it is read on the event loop. More than a thousand texts of three thousand letters. */
export const MOST_BYTES = 4 * 1024 * 1024;
