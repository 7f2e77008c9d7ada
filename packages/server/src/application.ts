import { randomUUID } from 'node:crypto';

import {
  ACTIONS,
  type Action,
  EngineError,
  type EngineReply,
  type EngineRequest,
  type Operation,
  type SearchEngine,
} from '@sparrow-search/engine';

import type { Config } from './config.js';
import { consolePage, toConsole } from './console.js';
import { documentation } from './documentation.js';
import { HttpError, RoutingError } from './errors.js';
import { Admission } from './http/admission.js';
import { readBody } from './http/body.js';
import type { Exchange, Finished } from './http/exchange.js';
import { checkHeaders } from './http/header-lines.js';
import { type Hold, InFlight } from './http/in-flight.js';
import { kindOfBody, negotiate } from './http/media-types.js';
import { type Answer, answerToError, finish, json } from './http/respond.js';
import { securityHeaders } from './http/security-headers.js';
import { traceOf } from './http/trace-context.js';
import { unhandled, unknownPath } from './http/unknown-path.js';
import { unrecognized } from './http/unrecognized.js';
import { checkPath, parametersOf } from './http/uri.js';
import { answeredIn, checkEndpoint, parametersIn, spokenBy } from './http/versions.js';
import { deprecations, warning } from './http/warnings.js';
import { yamlToJson } from './http/yaml.js';
import { type Identity, describe } from './identity.js';
import type { EngineFigures } from './instruments/engine.js';
import { Exposition } from './instruments/exposition.js';
import { Instruments } from './instruments/instruments.js';
import type { Logger } from './log.js';
import { clusterStats } from './node/cluster-stats.js';
import type { NodeContext } from './node/common.js';
import { measure } from './node/machine.js';
import { healthFigures, healthReport } from './node/health-report.js';
import { hotThreads } from './node/hot-threads.js';
import { checkOrigin } from './mcp/origin.js';
import { license, xpack } from './node/license.js';
import { nodesInfo, nodesStats } from './node/nodes.js';
import { type Ask, askFor } from './openai/ask.js';
import { embeddings } from './openai/embeddings.js';
import { inOpenAiForm, isOpenAiPath } from './openai/errors.js';
import { listModels, showModel } from './openai/models.js';
import { rerank } from './openai/rerank.js';
import { openapi } from './openapi/document.js';
import type { Route } from './routes/table.js';
import { changesNothing, checkParameter } from './routes/parameters.js';
import { COMMON_PARAMS, type Endpoint, type LocalOperation, type Method, isReadLate } from './routes/types.js';
import {
  createApiKey,
  describeCaller,
  getApiKeys,
  invalidateApiKeys,
  queryApiKeys,
  updateApiKey,
  updateApiKeys,
} from './security/api.js';
import { Attempts } from './security/attempts.js';
import type { AuditLog } from './security/audit.js';
import { authenticate, claimedKey, stillHolding } from './security/authenticate.js';
import { admit, rightsFor } from './security/authorize.js';
import type { ApiKey, KeyStore } from './security/key-store.js';

/** What the application needs once it serves. */
export interface Services {
  readonly engine: SearchEngine;
  readonly keys: KeyStore;
  readonly identity: Identity;
  /** The data directory. */
  readonly data: string;
  /** `host:port` that the server listens on. */
  readonly address: string;
}

export interface AppOptions {
  /** The services, or undefined as long as the engine is opening: then all but readiness answers 503. */
  readonly services: () => Services | undefined;
  readonly config: Pick<Config, 'maxBodyBytes' | 'productHeader' | 'compression'> &
    Partial<Pick<Config, 'mcpWrite' | 'metricsOpen' | 'slowRequestSeconds' | 'tlsCert'>>;
  readonly log: Logger;
  /** Whether the server is stopping: then it is alive, but not ready. */
  readonly stopping?: () => boolean;
  /** Where requests are counted; each application has its own unless it is given some. */
  readonly instruments?: Instruments;
  /** Where every request is written down, if anywhere. */
  readonly audit?: AuditLog | undefined;
  /**
   * Whether a request without a key is the owner's. Only for callers in this very process, which hold the engine anyway: nothing that
   * listens may have it.
   */
  readonly trusting?: boolean;
}

/** What is known of a request by and by, for the audit log. */
interface Trail {
  caller?: ApiKey;
  endpoint?: Endpoint;
  /** The indices and aliases that the engine read in it. */
  named?: readonly string[];
}

/** What accompanies a request on its way through the server. */
interface Passage {
  readonly trail: Trail;
  readonly requestId: string;
  /** What its body and its answer hold of the memory for both. */
  readonly hold: Hold;
  readonly admission: Admission;
}

/** What a request is answered with. */
interface Context extends AppOptions {
  readonly attempts: Attempts;
  readonly instruments: Instruments;
  /** Answers the requests that an answer takes. */
  readonly application: Application;
}

/** A request with everything known about it before it is carried out. */
interface Call {
  readonly exchange: Exchange;
  readonly endpoint: Endpoint;
  readonly services: Services | undefined;
  readonly caller: ApiKey | undefined;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly maxBodyBytes: number;
  readonly requestId: string;
  readonly isStopping: boolean;
  readonly instruments: Instruments;
  readonly options: Context;
  /** Is told the indices that the request names, where anybody wants to know. */
  readonly named: EngineRequest['named'];
}

/** Longest body of an operation that the engine does not carry out, in bytes. */
const MAX_LOCAL_BODY = 256 * 1024;

/** Order of methods in the sentence of a 405 and in its `Allow` header, as the original writes them. */
const SENTENCE_ORDER: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'];
const ALLOW_ORDER: readonly Method[] = ['PUT', 'GET', 'POST', 'DELETE', 'HEAD'];

/** The HTTP application, without a server: it answers exchanges, and never throws. */
export class Application {
  readonly #options: Context;
  readonly #admission = new Admission();
  readonly #headers: readonly (readonly [string, string])[];
  readonly #slowMillis: number;
  /** Bytes that the engine may still allocate. */
  readonly #room: () => number;
  /** What bodies and answers hold on their way. */
  readonly inFlight: InFlight;

  constructor(options: AppOptions) {
    const { config, instruments = new Instruments() } = options;
    this.#options = { ...options, instruments, attempts: new Attempts(), application: this };
    this.#headers = securityHeaders(config.tlsCert !== undefined);
    this.#slowMillis = (config.slowRequestSeconds ?? 0) * 1000;
    this.#room = () => options.services()?.engine.room?.() ?? Infinity;
    this.inFlight = new InFlight(config.maxBodyBytes, {
      room: this.#room,
      keepBodies: (bytes) => options.services()?.engine.keepBodies?.(bytes),
    });
    instruments.inFlight = this.inFlight;
  }

  /**
   * Answers a request.
   *
   * @param route what its path stands for, if anything
   * @param path the parameters in the path
   */
  async answer(
    exchange: Exchange,
    route: Route | undefined,
    path: Readonly<Record<string, string>>,
  ): Promise<Finished> {
    const { config, log } = this.#options;
    const { requests } = this.#options.instruments;
    const begun = performance.now();
    requests.active += 1;
    const requestId = randomUUID();
    const hold = this.inFlight.request();
    let answer: Answer;
    let query: Readonly<Record<string, string>> = {};
    const trail: Trail = {};
    const refuse = (error: unknown): Answer => {
      const refused = refusal(error, exchange, requestId, log);
      return isOpenAiPath(route?.path ?? exchange.path) ? inOpenAiForm(refused) : refused;
    };
    try {
      query = parametersOf(exchange.uri);
      checkPath(exchange.path);
      checkHeaders(exchange);
      const unknown = unknownPath(exchange, route);
      if (route === undefined || unknown !== undefined) throw this.#unknown(exchange, unknown);
      answer =
        toConsole(exchange) ??
        (await handle(exchange, route, path, query, this.#options, {
          trail,
          requestId,
          hold,
          admission: this.#admission,
        }));
      if (isRead(trail.endpoint)) hold.takeAnswer(answer.body?.length ?? 0);
    } catch (error) {
      answer = answeredIn(spokenBy(exchange), refuse(error));
      if (REFUSALS.has(answer.status)) requests.rejected(answer.status, typeOf(error));
    } finally {
      hold.release();
    }
    this.#audit(exchange, path, trail, answer, requestId);
    const headers: (readonly [string, string])[] = [];
    if (config.productHeader) headers.push(['X-Elastic-Product', 'Elasticsearch']);
    const opaqueId = exchange.header('x-opaque-id');
    if (opaqueId !== undefined) headers.push(['X-Opaque-Id', opaqueId]);
    headers.push(['X-Request-Id', requestId]);
    headers.push(...this.#headers);
    // Pages say themselves how long they may be kept; what is answered to a key may not be kept by anybody.
    if (answer.type !== 'html') headers.push(['Cache-Control', 'no-store']);
    const ms = performance.now() - begun;
    const isSlow = this.#slowMillis > 0 && ms >= this.#slowMillis;
    if (log.debugging || isSlow) {
      const line = {
        ...named(exchange, requestId),
        route: route?.path ?? null,
        status: answer.status,
        ms: Math.round(ms * 100) / 100,
      };
      if (isSlow) log.warn('slow request', line);
      else log.debug('request', line);
    }
    const finished = await finish(answer, exchange, query, headers, this.#room).catch(async (error: unknown) =>
      // What cannot be shaped is refused without any shape.
      finish(refuse(error), exchange, {}, headers),
    );
    requests.active -= 1;
    requests.answered(route, exchange.method, answer.status, (performance.now() - begun) / 1000);
    const encodings = config.compression && exchange.method !== 'HEAD' ? exchange.header('accept-encoding') : undefined;
    if (encodings === undefined) return finished;
    const { encode } = await import('./http/encodings.js');
    return encode(finished, encodings);
  }

  #audit(
    exchange: Exchange,
    path: Readonly<Record<string, string>>,
    { caller, endpoint, named = [] }: Trail,
    { status, body }: Answer,
    requestId: string,
  ): void {
    const { audit } = this.#options;
    if (audit === undefined || endpoint?.action === 'public') return;
    const action = endpoint?.action ?? undefined;
    const claimed = caller === undefined ? claimedKey(exchange.header('authorization')) : undefined;
    const opaqueId = exchange.header('x-opaque-id');
    const inPath = new Set((path['index'] ?? '').split(','));
    const refused = status === 401 || status === 403 || (status === 429 && caller === undefined);
    audit.write({
      ...(caller === undefined ? {} : { key: caller }),
      ...(claimed === undefined ? {} : { claimed }),
      ...(action === undefined ? {} : { action }),
      method: exchange.method,
      path: exchange.path,
      ...(path['index'] === undefined ? {} : { indices: path['index'] }),
      ...(named.every((name) => inPath.has(name)) ? {} : { named }),
      from: exchange.from,
      status,
      allowed: !refused && (hasRefusedParts(action, caller, body) ? 'in part' : true),
      requestId,
      ...(opaqueId === undefined ? {} : { opaqueId }),
    });
  }

  /** Unknown paths are as closed as known ones. */
  #unknown(exchange: Exchange, refusal = unhandled(exchange)): Error {
    return refuseUnknownCaller(exchange, this.#options) ?? refusal;
  }
}

async function handle(
  exchange: Exchange,
  route: Route,
  path: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
  options: Context,
  { trail, requestId, hold, admission }: Passage,
): Promise<Answer> {
  const { method } = exchange;
  const { maxBodyBytes } = options.config;
  if (method === 'OPTIONS') return { status: 200, body: null, type: 'text', headers: [['Allow', allow(route)]] };
  // Whatever can be got can be asked for without its body.
  const endpoint = route.methods.get(method as Method) ?? (method === 'HEAD' ? route.methods.get('GET') : undefined);
  if (endpoint !== undefined) trail.endpoint = endpoint;
  if (endpoint !== undefined && 'local' in endpoint.handler && endpoint.handler.local === 'mcp') checkOrigin(exchange);
  const services = options.services();
  const isStopping = options.stopping?.() ?? false;
  const { instruments } = options;
  const named = options.audit === undefined ? undefined : (names: readonly string[]) => void (trail.named = names);
  const call = (asked: Endpoint, from: ApiKey | undefined, body?: Uint8Array): Call => ({
    exchange,
    endpoint: asked,
    services,
    caller: from,
    path,
    query,
    body,
    maxBodyBytes,
    requestId,
    isStopping,
    instruments,
    options,
    named,
  });
  if (endpoint !== undefined && isPublic(endpoint, options)) return carryOut(call(endpoint, undefined));
  if (services === undefined) throw starting();
  await meet(exchange, services);
  const caller = authenticated(exchange, services, options);
  trail.caller = caller;
  if (endpoint === undefined) {
    const allowed = SENTENCE_ORDER.filter((known) => route.methods.has(known)).join(', ');
    throw new RoutingError(
      405,
      `Incorrect HTTP method for uri [${exchange.uri}] and method [${method}], allowed: [${allowed}]`,
      true,
      [['Allow', allow(route)]],
    );
  }
  checkEndpoint(exchange, endpoint);
  checkQuery(exchange, endpoint, query);
  // Before the body is read: who may do nothing with it does not make the server take it.
  admit(caller, endpoint, path, query);
  // What is not the engine's is read on the event loop.
  const most =
    'local' in endpoint.handler ? Math.min(maxBodyBytes, endpoint.mostBytes ?? MAX_LOCAL_BODY) : maxBodyBytes;
  const op = 'engine' in endpoint.handler ? endpoint.handler.engine : '';
  const place = admission.admit(op);
  try {
    const reading = readChecked(exchange, endpoint, query, most, hold);
    const body = await (place?.whileReading(reading) ?? reading);
    const holder = stillHolding(services.keys, caller, Date.now());
    if (holder !== caller) admit(holder, endpoint, path, query);
    const answer = await carryOut(call(endpoint, holder, body));
    if (isRejected(answer)) admission.refused(op);
    return answer;
  } finally {
    place?.leave();
  }
}

/** A key that another server has just made is looked for before it is turned away. */
async function meet(exchange: Exchange, { keys }: Services): Promise<void> {
  if (!keys.isShared) return;
  const id = claimedKey(exchange.header('authorization'));
  if (id !== undefined && keys.get(id) === undefined) await keys.refresh();
}

function authenticated(exchange: Exchange, { keys }: Services, { attempts, log, trusting = false }: Context): ApiKey {
  const owner = trusting && exchange.header('authorization') === undefined ? keys.owner() : undefined;
  if (owner !== undefined) return owner;
  return authenticate(keys, attempts, log, exchange, Date.now());
}

/**
 * Whether nothing is lost if the engine's answer is not given. What tells of a change is given whether there is room or not, and so is what
 * tells of the server itself.
 */
function isRead(endpoint: Endpoint | undefined): boolean {
  if (endpoint === undefined) return false;
  return endpoint.cancellable ?? ('engine' in endpoint.handler && endpoint.method === 'GET');
}

const REFUSED_PART = Buffer.from('"security_exception"');

/** Whether parts of a request that was carried out were refused. */
function hasRefusedParts(action: Action | undefined, caller: ApiKey | undefined, body: Answer['body']): boolean {
  if (action === undefined || !ACTIONS[action].composite) return false;
  if (caller === undefined || caller.owner || !(body instanceof Uint8Array)) return false;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(REFUSED_PART);
}

const NO_ROOM_FOR_READS = Buffer.from('rejected execution: search has');

/**
 * Whether the engine had no room for the read among those that wait. One that is too large itself, or whose model has too much to do, is
 * another matter: others may be answered.
 */
function isRejected({ status, body }: Answer): boolean {
  if (status !== 429 || !(body instanceof Uint8Array)) return false;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(NO_ROOM_FOR_READS);
}

async function carryOut(call: Call): Promise<Answer> {
  const { endpoint } = call;
  if ('local' in endpoint.handler) return LOCAL[endpoint.handler.local](call);
  const { exchange, path, body } = call;
  const { engine, caller } = serving(call);
  const asText = endpoint.reply === 'text';
  const { explicit } = negotiate(exchange.header('accept'), undefined, call.query['format']);
  const { action, rights } = rightsFor(caller, endpoint);
  const request: EngineRequest = {
    op: endpoint.handler.engine,
    path,
    // A table is made as JSON to become YAML.
    query: asText && explicit ? { ...withoutCommon(call.query), format: 'json' } : withoutCommon(call.query),
    requestId: call.requestId,
    opaqueId: exchange.header('x-opaque-id'),
    traceId: traceOf(exchange.header('traceparent')),
    action,
    rights,
    named: call.named,
    concurrent: exchange.concurrent,
  };
  // The work stops when the connection closes before the answer is there.
  const cancel = (endpoint.cancellable ?? endpoint.method === 'GET') ? exchange.onGone.bind(exchange) : undefined;
  const sent = MEASURED.has(request.op) ? await measured(serving(call)) : body;
  if (request.op === 'restore_snapshot') await restoreKeys(serving(call), request, body);
  const reply = await engine.execute(request, sent, cancel);
  const warnings = warningsOf(endpoint, call.query, reply);
  return {
    status: reply.status,
    body: reply.body,
    type: reply.text === true ? 'text' : 'json',
    headers: reply.status === 201 ? [...location(reply), ...warnings] : warnings,
    statistics: STATISTICS.has(endpoint.handler.engine),
  };
}

const LOCAL: Readonly<Record<LocalOperation, (call: Call) => Answer | Promise<Answer>>> = {
  info: (call) => {
    const { identity } = serving(call);
    // Unlike every other answer this one has always been laid out for people.
    return { status: 200, body: `${JSON.stringify(describe(identity), null, 2).replaceAll('": ', '" : ')}\n` };
  },
  health: ({ services, isStopping }) => {
    if (isStopping) return json(503, { status: 'stopping' });
    return services === undefined ? json(503, { status: 'starting' }) : json(200, { status: 'ready' });
  },
  live: () => json(200, { status: 'live' }),
  metrics: async (call) => {
    const { services, isStopping, instruments } = call;
    // What the HTTP layer counts is worth reading most when the engine takes nothing more in.
    const figures = await figuresOf(services).catch(() => undefined);
    const body = await instruments.page(services !== undefined && !isStopping, figures);
    return { status: 200, body, type: 'text', contentType: Exposition.contentType };
  },
  console: () => consolePage(),
  documentation: ({ path }) =>
    documentation([path['folder'], path['page']].filter((part) => part !== undefined).join('/')),
  openapi: () => ({ status: 200, body: openapi() }),
  nodes_info: async (call) => json(200, await nodesInfo(nodeContext(call), call.path)),
  nodes_stats: async (call) => ({
    ...json(200, await nodesStats(nodeContext(call), call.path, call.query)),
    statistics: true,
  }),
  hot_threads: async (call) => ({
    status: 200,
    body: await hotThreads(nodeContext(call), call.path, call.query),
    type: 'text',
  }),
  cluster_stats: async (call) => ({
    ...json(200, await clusterStats(nodeContext(call), call.path)),
    statistics: true,
  }),
  license: (call) => json(200, license(serving(call).identity)),
  xpack_info: (call) => json(200, xpack(serving(call).identity, call.query)),
  health_report: async (call) => {
    const figures = await healthFigures(nodeContext(call));
    return json(200, healthReport(figures, call.path['feature'], call.query['verbose'] !== 'false'));
  },
  mcp: async ({ exchange, body, options: { application, config } }) => {
    // Only servers that agents talk to load what that takes.
    const { answerMessage } = await import('./mcp/http.js');
    return answerMessage(exchange, body, application, config.mcpWrite === true);
  },
  authenticate: (call) => json(200, describeCaller(serving(call).caller)),
  create_api_key: async (call) => {
    const { keys, caller } = serving(call);
    return json(200, await createApiKey(keys, caller, call.body, Date.now()));
  },
  get_api_keys: (call) => {
    const { keys, caller } = serving(call);
    const { status, body } = getApiKeys(keys, caller, call.query, Date.now());
    return json(status, body);
  },
  invalidate_api_keys: async (call) => {
    const { keys, caller } = serving(call);
    return json(200, await invalidateApiKeys(keys, caller, call.body, Date.now()));
  },
  query_api_keys: (call) => {
    const { keys, caller } = serving(call);
    return json(200, queryApiKeys(keys, caller, call.query, call.body));
  },
  update_api_key: async (call) => {
    const { keys, caller } = serving(call);
    return json(200, await updateApiKey(keys, caller, call.path['id'] ?? '', call.body, Date.now()));
  },
  bulk_update_api_keys: async (call) => {
    const { keys, caller } = serving(call);
    return json(200, await updateApiKeys(keys, caller, call.body, Date.now()));
  },
  openai_embeddings: (call) => embeddings(inferenceOf(call), call.body),
  openai_models: (call) => listModels(inferenceOf(call)),
  openai_model: (call) => showModel(inferenceOf(call), call.path['model'] ?? ''),
  cohere_rerank: (call) => {
    const version = call.exchange.path.startsWith('/v2') ? '2' : '1';
    return rerank(inferenceOf(call), call.body, { id: call.requestId, version });
  },
};

/** What asks the engine for models and vectors on behalf of a call. */
function inferenceOf(call: Call): Ask {
  const { exchange, query, requestId } = call;
  return askFor(exchange, serving(call).engine, { requestId, timeout: query['timeout'] });
}

/** Brings API keys back, if a restore asks for them: before it, so that none of them is missing when its indices are there. */
async function restoreKeys({ engine, keys }: Services, restore: EngineRequest, body?: Uint8Array): Promise<void> {
  const reply = await engine.execute({ ...restore, op: 'snapshot_keys' }, body);
  const { keys: text } = JSON.parse(new TextDecoder().decode(reply.body)) as { readonly keys?: string };
  if (text !== undefined) await keys.adopt(text, Date.now());
}

/** Operations whose tables show what the process uses of its machine. The engine gets that as their body. */
const MEASURED: ReadonlySet<string> = new Set(['cat_nodes', 'cat_allocation', 'cat_thread_pool']);

async function measured({ data, address }: Services): Promise<Uint8Array> {
  return new TextEncoder().encode(JSON.stringify(await measure(data, address)));
}

/** What the answers about the node are made of, for a caller who may see them. */
function nodeContext(call: Call): NodeContext {
  const { engine, identity, data, address } = serving(call);
  return {
    identity,
    data,
    address,
    maxBodyBytes: call.maxBodyBytes,
    instruments: call.instruments,
    ask: async (op, path, query) => {
      const reply = await engine.execute({ op, path, query });
      return JSON.parse(new TextDecoder().decode(reply.body)) as Record<string, unknown>;
    },
  };
}

/** What the engine says about itself, if it is open. */
async function figuresOf(services: Services | undefined): Promise<EngineFigures | undefined> {
  if (services === undefined) return undefined;
  const reply = await services.engine.execute({ op: 'instruments', path: {}, query: {} });
  return JSON.parse(new TextDecoder().decode(reply.body)) as EngineFigures;
}

interface Serving extends Services {
  readonly caller: ApiKey;
}

/** What a call has once its caller is known. Public endpoints never ask for it. */
function serving({ services, caller }: Call): Serving {
  if (services === undefined || caller === undefined) throw starting();
  return {
    engine: services.engine,
    keys: services.keys,
    identity: services.identity,
    data: services.data,
    address: services.address,
    caller,
  };
}

async function readChecked(
  exchange: Exchange,
  endpoint: Endpoint,
  query: Readonly<Record<string, string>>,
  limit: number,
  hold: Hold,
): Promise<Uint8Array | undefined> {
  const accept = exchange.header('accept');
  negotiate(accept, undefined, query['format']);
  const body = await readBody(exchange, limit, hold);
  if (body === undefined) return endpoint.body ? fromSource(query) : undefined;
  if (!endpoint.body) {
    throw new HttpError(
      'illegal_argument',
      `request [${exchange.method} ${exchange.path}] does not support having a body`,
    );
  }
  const kind = kindOfBody(exchange.header('content-type'), accept);
  if (kind !== 'yaml') return body;
  if (endpoint.ndjson === true) {
    throw new RoutingError(406, 'Content-Type [YAML] does not support stream parsing. Use JSON or SMILE instead');
  }
  return yamlToJson(body);
}

/** A body in the query string, for clients that cannot send one with GET. */
async function fromSource(query: Readonly<Record<string, string>>): Promise<Uint8Array | undefined> {
  const { source, source_content_type: type } = query;
  if (source === undefined && type === undefined) return undefined;
  if (source === undefined || type === undefined) {
    throw new HttpError('illegal_argument', 'source and source_content_type parameters are required');
  }
  let kind;
  try {
    kind = kindOfBody(type, undefined);
  } catch {
    throw new HttpError('illegal_argument', `Unknown value for source_content_type [${type}]`);
  }
  const bytes = new TextEncoder().encode(source);
  return kind === 'yaml' ? yamlToJson(bytes) : bytes;
}

/** @throws {HttpError} 400 for a parameter that the endpoint does not have, or of another type than it has */
function checkQuery(exchange: Exchange, endpoint: Endpoint, query: Readonly<Record<string, string>>): void {
  const names = Object.keys(query);
  if (names.length === 0) return;
  const params = parametersIn(spokenBy(exchange), endpoint);
  const unknown = names.filter(
    (name) =>
      !COMMON_PARAMS.has(name) &&
      !params.includes(name) &&
      !(endpoint.body && (name === 'source' || name === 'source_content_type')),
  );
  if (unknown.length > 0) {
    const candidates = params.filter((name) => !isReadLate(endpoint, name));
    throw unrecognized(exchange.path, unknown, new Set([...candidates, ...COMMON_PARAMS]));
  }
  for (const name of names) checkParameter(name, query[name] ?? '', endpoint);
}

function withoutCommon(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(query);
  // Most requests have none at all.
  if (entries.length === 0) return query;
  return Object.fromEntries(
    entries.filter(
      ([name, value]) =>
        !COMMON_PARAMS.has(name) && !changesNothing(name, value) && name !== 'source' && name !== 'source_content_type',
    ),
  );
}

function allow(route: Route): string {
  return ALLOW_ORDER.filter((method) => route.methods.has(method)).join(',');
}

/** Operations whose answers count bytes and milliseconds, for people too with `?human`. */
const STATISTICS: ReadonlySet<string> = new Set<Operation>([
  ...(['get_index', 'get_settings', 'list_tasks', 'get_task', 'index_stats', 'recovery'] as const),
]);

const NO_HEADERS: readonly (readonly [string, string])[] = [];

function warningsOf(
  endpoint: Endpoint,
  query: Readonly<Record<string, string>>,
  { warnings }: EngineReply,
): readonly (readonly [string, string])[] {
  const said = deprecations(endpoint, query);
  if (said.length === 0 && warnings === undefined) return NO_HEADERS;
  return [...said, ...(warnings ?? [])].map((sentence) => ['Warning', warning(sentence)] as const);
}

/** Bytes that the names have at most which the answer to a write begins with: 255 and 512, each of them escaped as up to six. */
const MOST_NAMES = 8 * 1024;

/** Where a created document is. Read off the beginning of the body: an update shows the whole document behind it, if it is asked for. */
function location({ body }: EngineReply): readonly (readonly [string, string])[] {
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, MOST_NAMES)).toString();
  // An old cluster says a type as well.
  const names = /^\{"_index":("(?:[^"\\]|\\.)*"),(?:"_type":"\w*",)?"_id":("(?:[^"\\]|\\.)*")[,}]/;
  const [, index, id] = names.exec(text) ?? [];
  if (index === undefined || id === undefined) return [];
  const part = (name: string): string => encodeURIComponent(JSON.parse(name) as string);
  return [['Location', `/${part(index)}/_doc/${part(id)}`]];
}

/** Unknown paths are as closed as known ones: the error for a caller without a key, if it has none. */
function refuseUnknownCaller(exchange: Exchange, options: Context): Error | undefined {
  if (exchange.method === 'OPTIONS') return undefined;
  const services = options.services();
  if (services === undefined) return starting();
  try {
    authenticated(exchange, services, options);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

function starting(): HttpError {
  return new HttpError('starting', 'blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];');
}

function refusal(error: unknown, exchange: Exchange, requestId: string, log: Logger): Answer {
  const known = answerToError(error);
  // Whoever polls until the server is ready is no fault; `debug` has a line for every request.
  const isExpected = error instanceof HttpError && error.code === 'starting';
  if ((known === undefined || known.status >= 500) && !isExpected) {
    const isCallers = known?.status === 500 && CALLERS_MISTAKES.has(typeOf(error));
    log[isCallers ? 'warn' : 'error']('request failed', {
      ...named(exchange, requestId),
      status: known?.status ?? 500,
      error: described(error),
    });
  }
  return known ?? json(500, new HttpError('internal', 'an internal error; see the log').toJson());
}

/** What went wrong, for the log: the reason where the engine gave one, with the place in the code where it is a fault of ours. */
function described(error: unknown): string {
  if (error instanceof EngineError) return error.reason;
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}

/** Statuses that say that no work was done for a request. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 413, 429, 503]);

/**
 * Errors with status 500 that are mostly mistakes of callers, for whom the original has no better status: an index that a restore
 * finds open, a type or place of a repository that cannot be, an alias with two write indices. What the disk refuses has a line of its own.
 */
const CALLERS_MISTAKES: ReadonlySet<string> = new Set([
  'repository_exception',
  'snapshot_restore_exception',
  'illegal_state_exception',
]);

/** The type of an error as its body names it; empty where it has none. */
function typeOf(error: unknown): string {
  if (error instanceof HttpError) return error.type;
  if (!(error instanceof EngineError)) return '';
  return /"type":"(\w+)"/.exec(Buffer.from(error.body.subarray(0, 200)).toString('latin1'))?.[1] ?? '';
}

/** What a request is called in the log. */
function named(exchange: Exchange, requestId: string): Record<string, string> {
  const opaqueId = exchange.header('x-opaque-id');
  const traceId = traceOf(exchange.header('traceparent'));
  return {
    request_id: requestId,
    method: exchange.method,
    path: exchange.path,
    ...(opaqueId === undefined ? {} : { opaque_id: opaqueId }),
    ...(traceId === undefined ? {} : { 'trace.id': traceId }),
  };
}

/** Whether no key is needed: what orchestrators and browsers ask for, and figures where the operator says so. */
function isPublic({ action, handler }: Endpoint, { config }: AppOptions): boolean {
  return action === 'public' || (config.metricsOpen === true && 'local' in handler && handler.local === 'metrics');
}
