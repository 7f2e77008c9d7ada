import { type LocalOperation, listNone } from '@sparrow-search/endpoints';
import { openapi } from '@sparrow-search/endpoints/openapi';

import {
  asyncSearchStatus,
  deleteAsyncSearch,
  getAsyncSearch,
  submitAsyncSearch,
} from '../async-search/async-search.js';
import { consolePage } from '../console.js';
import { documentation, documentationFor } from '../documentation.js';
import { type Answer, json } from '../exchange/respond.js';
import { describe } from '../identity.js';
import type { EngineFigures } from '../instruments/engine.js';
import { Exposition } from '../instruments/exposition.js';
import { type Call, senderOf, serving, starting } from '../middleware/call.js';
import { clusterStats } from '../node/cluster-stats.js';
import type { NodeContext } from '../node/common.js';
import { healthFigures, healthReport } from '../node/health-report.js';
import { hotThreads } from '../node/hot-threads.js';
import { license, xpack } from '../node/license.js';
import { nodesInfo, nodesStats } from '../node/nodes.js';
import { type Ask, askFor } from '../openai/ask.js';
import { embeddings } from '../openai/embeddings.js';
import { listModels, showModel } from '../openai/models.js';
import { rerank } from '../openai/rerank.js';
import { scriptContexts, scriptLanguages } from '../search-templates/contexts.js';
import { deleteScript, getScript, putScript } from '../search-templates/scripts.js';
import { multiSearchTemplate, renderTemplate, searchTemplate } from '../search-templates/templates.js';
import { type Asking, describeCaller, getApiKeys, queryApiKeys } from '../security/api.js';
import { createApiKey, invalidateApiKeys, updateApiKey, updateApiKeys } from '../security/changes.js';
import { endedTasks } from '../tasks/ended-tasks.js';

let openapiBytes: Buffer | undefined;

/** The operations that the HTTP layer answers itself. */
export const LOCAL: Readonly<Record<LocalOperation, (call: Call) => Answer | Promise<Answer>>> = {
  info: (call) => {
    const { identity } = serving(call);
    // Unlike every other answer this one has always been laid out for people.
    return { status: 200, body: `${JSON.stringify(describe(identity), null, 2).replaceAll('": ', '" : ')}\n` };
  },
  health: ({ services, application }) => {
    if (application.stopping?.() === true) return json(503, { status: 'stopping' });
    return services === undefined ? json(503, { status: 'starting' }) : json(200, { status: 'ready' });
  },
  live: () => json(200, { status: 'live' }),
  metrics: async (call) => {
    const { services, application } = call;
    const isServing = services !== undefined && application.stopping?.() !== true;
    // What the HTTP layer counts is worth reading most when the engine takes nothing more in.
    const figures = await figuresOf(call).catch(() => undefined);
    const body = await application.instruments.page(isServing, figures);
    return { status: 200, body, type: 'text', contentType: Exposition.contentType };
  },
  console: () => consolePage(),
  documentation: ({ path }) =>
    documentation([path['folder'], path['page']].filter((part) => part !== undefined).join('/')),
  search_documentation: (call) => {
    const data = (): string => {
      if (call.services === undefined) throw starting();
      return call.services.data;
    };
    return documentationFor(call.query['q'], data, senderOf(call));
  },
  openapi: () => ({ status: 200, body: (openapiBytes ??= Buffer.from(openapi())), isShared: true }),
  nodes_info: async (call) => json(200, await nodesInfo(nodeContext(call), call.path, call.query)),
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
  list_none: ({ endpoint, path, query }) => json(200, listNone(endpoint?.path ?? '', path, query)),
  mcp: async (call) => {
    const { exchange, body, dispatch, application } = call;
    // Only servers that agents talk to load what that takes.
    const { answerMessage } = await import('../mcp/http.js');
    return answerMessage(exchange, body, senderOf(call), dispatch, application.config.mcpWrite === true);
  },
  authenticate: (call) => json(200, describeCaller(serving(call).caller)),
  create_api_key: (call) => createApiKey(serving(call).keys, askingFor(call), call.body, Date.now()),
  get_api_keys: (call) => getApiKeys(serving(call).keys, askingFor(call), call.query, Date.now()),
  invalidate_api_keys: (call) => invalidateApiKeys(serving(call).keys, askingFor(call), call.body, Date.now()),
  query_api_keys: (call) => queryApiKeys(serving(call).keys, askingFor(call), call.query, call.body),
  update_api_key: (call) =>
    updateApiKey(serving(call).keys, askingFor(call), call.path['id'] ?? '', call.body, Date.now()),
  bulk_update_api_keys: (call) => updateApiKeys(serving(call).keys, askingFor(call), call.body, Date.now()),
  search_template: searchTemplate,
  msearch_template: multiSearchTemplate,
  render_template: renderTemplate,
  async_search: submitAsyncSearch,
  get_async_search: getAsyncSearch,
  async_search_status: asyncSearchStatus,
  delete_async_search: deleteAsyncSearch,
  put_script: putScript,
  script_contexts: () => json(200, scriptContexts()),
  script_languages: () => json(200, scriptLanguages()),
  get_script: getScript,
  delete_script: deleteScript,
  ended_tasks: endedTasks,
  openai_embeddings: (call) => embeddings(inferenceOf(call), call.body),
  openai_models: (call) => listModels(inferenceOf(call)),
  openai_model: (call) => showModel(inferenceOf(call), call.path['model'] ?? ''),
  cohere_rerank: (call) => {
    const version = call.exchange.path.startsWith('/v2') ? '2' : '1';
    return rerank(inferenceOf(call), call.body, { id: call.requestId, version });
  },
};

/** Who asks for API keys, or changes them, in a call. */
function askingFor(call: Call): Asking {
  return { caller: serving(call).caller, sender: senderOf(call), hold: call.hold };
}

/** What asks the engine for models and vectors on behalf of a call. */
function inferenceOf(call: Call): Ask {
  const { exchange, query, requestId } = call;
  return askFor(exchange, serving(call).engine, { requestId, timeout: query['timeout'] });
}

/** What the answers about the node are made of, for a caller who may see them. */
function nodeContext(call: Call): NodeContext {
  const { application } = call;
  const { engine, identity, data, address } = serving(call);
  return {
    identity,
    data,
    address,
    maxBodyBytes: application.config.maxBodyBytes,
    instruments: application.instruments,
    ask: async (op, path, query) => {
      const reply = await engine.execute({ op, path, query });
      return JSON.parse(new TextDecoder().decode(reply.body)) as Record<string, unknown>;
    },
  };
}

/** What the engine says about itself, if it is open. */
async function figuresOf({ services }: Call): Promise<EngineFigures | undefined> {
  if (services === undefined) return undefined;
  const { engine } = services;
  const reply = await engine.execute({ op: 'instruments', path: {}, query: {} });
  const figures = JSON.parse(new TextDecoder().decode(reply.body)) as EngineFigures;
  const { total_limit: limit } = figures.memory;
  const room = engine.room?.();
  if (room === undefined || limit === undefined) return figures;
  return { ...figures, memory: { ...figures.memory, allocated: Math.max(0, limit - room) } };
}
