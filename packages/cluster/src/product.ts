import { isObject } from './json.js';
import type { Transport } from './transport.js';

/** What a cluster is, as far as requests have to be written for it. */
export interface Product {
  readonly name: 'OpenSearch' | 'Elasticsearch';
  readonly version: string;
  readonly major: number;
  /** Whether it takes the tokens of a query in one clause: OpenSearch with its neural-search plugin. */
  readonly neuralSparse: boolean;
  /** Whether it is OpenSearch with its k-NN plugin, which has a type for dense vectors. */
  readonly knn: boolean;
  /** What makes and searches the graphs of dense vectors in OpenSearch. */
  readonly vectorEngine: VectorEngine;
}

/** Engines of OpenSearch's k-NN plugin: `lucene` is everywhere, `faiss` where its native library is. */
export type VectorEngine = 'lucene' | 'faiss';

/**
 * Whether the script of OpenSearch that compares vectors gives a cosine as `1 + cosine`, which is half of that from 2.19 on.
 */
export function hasWholeCosines({ name, version }: Product): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return name === 'OpenSearch' && major === 2 && minor < 19;
}

/** A cluster that answers, and that Sparrow cannot stand in front of. */
export class UnsupportedClusterError extends Error {
  override readonly name = 'UnsupportedClusterError';
}

/**
 * Asks a cluster what it is.
 *
 * @param vectorEngine what is to make the graphs of dense vectors in OpenSearch
 * @throws {UnsupportedClusterError} for another product or version than Sparrow knows; {EngineError} when none answers
 */
export async function recognise(transport: Transport, vectorEngine: VectorEngine = 'lucene'): Promise<Product> {
  const { name, version } = (await fromRoot(transport)) ?? (await fromNodes(transport));
  const major = Number(version.split('.')[0]);
  const known = name === 'OpenSearch' ? major === 2 || major === 3 : major === 8;
  if (!known) {
    throw new UnsupportedClusterError(
      `the cluster is ${name} ${version}: Sparrow works over OpenSearch 2 and 3 and over Elasticsearch 8`,
    );
  }
  const plugins = name === 'OpenSearch' ? await pluginsOf(transport) : [];
  // A server that is put together from its parts names a plugin by its class.
  const has = (...names: readonly string[]): boolean => plugins.some((it) => names.includes(it));
  const neuralSparse = has('opensearch-neural-search', 'org.opensearch.neuralsearch.plugin.NeuralSearch');
  return {
    name,
    version,
    major,
    neuralSparse,
    knn: has('opensearch-knn', 'org.opensearch.knn.plugin.KNNPlugin'),
    vectorEngine,
  };
}

type Found = Pick<Product, 'name' | 'version'>;

async function fromRoot(transport: Transport): Promise<Found | undefined> {
  const { status, body } = await transport.json({ method: 'GET', path: '/' });
  if (status !== 200 || !isObject(body) || !isObject(body['version'])) return undefined;
  const { number, distribution } = body['version'];
  if (typeof number !== 'string') return undefined;
  return { name: distribution === 'opensearch' ? 'OpenSearch' : 'Elasticsearch', version: number };
}

/** A server without the module that answers `GET /` still tells the version of its nodes: the numbers do not overlap. */
async function fromNodes(transport: Transport): Promise<Found> {
  const query = { filter_path: 'nodes.*.version' };
  const { status, body } = await transport.json({ method: 'GET', path: '/_nodes/_local', query });
  const nodes = isObject(body) && isObject(body['nodes']) ? Object.values(body['nodes']) : [];
  const version = nodes.map((node) => (isObject(node) ? node['version'] : undefined)).find((it) => it !== undefined);
  if (status !== 200 || typeof version !== 'string') {
    throw new UnsupportedClusterError('what answers at the address of --cluster does not say which cluster it is');
  }
  return { name: Number(version.split('.')[0]) < 5 ? 'OpenSearch' : 'Elasticsearch', version };
}

async function pluginsOf(transport: Transport): Promise<readonly string[]> {
  const query = { format: 'json', h: 'component' };
  const { status, body } = await transport.json({ method: 'GET', path: '/_cat/plugins', query });
  if (status !== 200 || !Array.isArray(body)) return [];
  return body.flatMap((row) => (isObject(row) && typeof row['component'] === 'string' ? [row['component']] : []));
}
