import { ADMINISTRATION_ENDPOINTS } from './administration.js';
import { ASYNC_SEARCH_ENDPOINTS } from './async-search.js';
import { CAT_ENDPOINTS } from './cat.js';
import { CLUSTER_ENDPOINTS } from './cluster.js';
import { DOCUMENT_ENDPOINTS } from './documents.js';
import { INDEX_ENDPOINTS } from './indices.js';
import { INGEST_ENDPOINTS } from './ingest.js';
import { JOB_ENDPOINTS } from './jobs.js';
import { ML_ENDPOINTS } from './ml.js';
import { NONE_ENDPOINTS } from './empty-lists.js';
import { OPENAI_ENDPOINTS } from './openai.js';
import { SEARCH_TEMPLATE_ENDPOINTS } from './search-templates.js';
import { SEARCH_ENDPOINTS } from './search.js';
import { SERVICE_ENDPOINTS } from './service.js';
import { SNAPSHOT_ENDPOINTS } from './snapshots.js';
import { TEMPLATE_ENDPOINTS } from './templates.js';
import type { Endpoint, Method } from './types.js';

/** The whole interface, one row per method and path. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...SERVICE_ENDPOINTS,
  ...INDEX_ENDPOINTS,
  ...ADMINISTRATION_ENDPOINTS,
  ...CLUSTER_ENDPOINTS,
  ...CAT_ENDPOINTS,
  ...TEMPLATE_ENDPOINTS,
  ...DOCUMENT_ENDPOINTS,
  ...SEARCH_ENDPOINTS,
  ...SEARCH_TEMPLATE_ENDPOINTS,
  ...ASYNC_SEARCH_ENDPOINTS,
  ...INGEST_ENDPOINTS,
  ...ML_ENDPOINTS,
  ...OPENAI_ENDPOINTS,
  ...JOB_ENDPOINTS,
  ...SNAPSHOT_ENDPOINTS,
  ...NONE_ENDPOINTS,
];

/** One path with every method it answers. */
export interface Route {
  readonly path: string;
  readonly methods: ReadonlyMap<Method, Endpoint>;
}

/** The table by path, in the order in which a router must try them: at each segment, literals before parameters. */
export function routesByPath(): Route[] {
  const routes = new Map<string, Map<Method, Endpoint>>();
  for (const endpoint of ENDPOINTS) {
    const methods = routes.get(endpoint.path) ?? new Map<Method, Endpoint>();
    if (methods.has(endpoint.method)) {
      throw new Error(`two endpoints for ${endpoint.method} ${endpoint.path}`);
    }
    methods.set(endpoint.method, endpoint);
    routes.set(endpoint.path, methods);
  }
  return [...routes]
    .map(([path, methods]) => ({ path, methods }))
    .sort((a, b) => (sortKey(a.path) < sortKey(b.path) ? -1 : 1));
}

/** Hono's way of writing the same path. */
export function honoPath(path: string, prefix = ''): string {
  return path.replaceAll(/\{(\w+)\}/g, `:${prefix}$1`);
}

function sortKey(path: string): string {
  // `~` sorts behind every character of a literal segment, so that a parameter comes last at its place.
  return path.replaceAll(/\{\w+\}/g, '~');
}
