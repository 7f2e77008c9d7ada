import { type Action, type Operation, OPERATIONS } from '@sparrow-search/engine';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';

/** Operations that the HTTP layer answers itself: they are the same whichever engine is behind it. */
export type LocalOperation =
  | 'info'
  | 'health'
  | 'live'
  | 'metrics'
  | 'console'
  | 'documentation'
  | 'search_documentation'
  | 'nodes_info'
  | 'nodes_stats'
  | 'hot_threads'
  | 'cluster_stats'
  | 'license'
  | 'xpack_info'
  | 'health_report'
  | 'list_none'
  | 'authenticate'
  | 'create_api_key'
  | 'get_api_keys'
  | 'invalidate_api_keys'
  | 'query_api_keys'
  | 'update_api_key'
  | 'bulk_update_api_keys'
  | 'openai_embeddings'
  | 'openai_models'
  | 'openai_model'
  | 'cohere_rerank'
  | 'search_template'
  | 'msearch_template'
  | 'render_template'
  | 'put_script'
  | 'get_script'
  | 'delete_script'
  | 'script_contexts'
  | 'script_languages'
  | 'async_search'
  | 'get_async_search'
  | 'async_search_status'
  | 'delete_async_search'
  | 'ended_tasks'
  | 'openapi'
  | 'mcp';

/** The values of parameters by their names. */
export type Texts = Readonly<Record<string, string>>;

/** One row of the route table: everything the HTTP layer knows about an endpoint. */
export interface Endpoint {
  readonly method: Method;
  /** Path with `{name}` for parameters. Literal segments win over parameters. */
  readonly path: string;
  readonly handler: { readonly engine: Operation } | { readonly local: LocalOperation };
  /** What a key must be allowed to do; `null`: any valid key may; `'public'`: no key is needed. */
  readonly action: Action | null | 'public';
  /** Query parameters besides the ones that every endpoint takes. */
  readonly params: readonly string[];
  /** Whether a body is read at all. A body sent elsewhere is refused. */
  readonly body: boolean;
  /** Whether the body is a sequence of JSON texts, one a line. */
  readonly ndjson?: boolean;
  /** `text`: plain text unless `format=json` or the `Accept` header asks for JSON. */
  readonly reply?: 'json' | 'text';
  /**
   * Whether the work stops when the caller goes away; that of `GET` does unless this says otherwise. Never that of a single write of a
   * document: some clients send one and do not wait. Many in one request stop between two parts, and changes of API keys before they are
   * begun.
   */
  readonly cancellable?: boolean;
  /** Longest body in bytes of an operation that the engine does not read, if it may be longer than others of that kind. */
  readonly mostBytes?: number;
  /** The operation of the engine that one of the HTTP layer comes to: the request is admitted as one for that. */
  readonly leadsTo?: Operation;
}

/** Query parameters that every endpoint takes. */
export const COMMON_PARAMS: ReadonlySet<string> = new Set(['pretty', 'human', 'error_trace', 'filter_path', 'format']);

/**
 * Whether the original reads a parameter only where it is there: it then never proposes the name for one that is not known.
 */
export function isReadLate({ handler }: Endpoint, name: string): boolean {
  return 'engine' in handler && handler.engine === 'search' && SEARCH_SOURCE.has(name);
}

const SEARCH_SOURCE = new Set([
  ...[
    'from',
    'size',
    'explain',
    'version',
    'seq_no_primary_term',
    'timeout',
    'terminate_after',
    'track_scores',
    'sort',
  ],
  ...['track_total_hits', 'stored_fields', 'docvalue_fields', 'stats'],
]);

type EndpointOptions = Partial<Omit<Endpoint, 'method' | 'path' | 'handler' | 'action'>>;

/** Writes the rows of one operation of the engine: `routes` are `METHOD[|METHOD…] /path`. The engine declares all else. */
export function engine(op: Operation, routes: readonly string[]): Endpoint[] {
  const { action, body, parameters, stops, text } = OPERATIONS[op];
  return rows({ engine: op }, action, routes, {
    params: parameters,
    body: body !== 'none',
    ndjson: body === 'lines',
    reply: text ? 'text' : 'json',
    ...(stops ? { cancellable: true } : {}),
  });
}

/** Writes the rows of one operation of the HTTP layer. */
export function local(
  op: LocalOperation,
  action: Action | null | 'public',
  routes: readonly string[],
  options: EndpointOptions = {},
): Endpoint[] {
  return rows({ local: op }, action, routes, options);
}

function rows(
  handler: Endpoint['handler'],
  action: Endpoint['action'],
  routes: readonly string[],
  { params = [], body = false, ...rest }: EndpointOptions,
): Endpoint[] {
  return routes.flatMap((route) => {
    const [methods = '', path = ''] = route.split(' ');
    return methods.split('|').map((method) => ({
      method: method as Method,
      path,
      handler,
      action,
      params,
      body: body && method !== 'HEAD',
      ...rest,
    }));
  });
}
