import { type Endpoint, type Texts, COMMON_PARAMS, changesNothing } from '@sparrow-search/endpoints';
import type { Cancel, EngineReply, EngineRequest, Operation } from '@sparrow-search/engine';
import { foundNothing, holdsMappings, unknownEndpoints, unknownFields } from '@sparrow-search/engine/diagnostics';

import { negotiate } from '../exchange/media-types.js';
import type { Answer } from '../exchange/respond.js';
import { traceOf } from '../exchange/trace-context.js';
import { spokenBy } from '../exchange/versions.js';
import { deprecations, warning } from '../exchange/warnings.js';
import { type Call, type Serving, serving } from '../middleware/call.js';
import { measure } from '../node/machine.js';
import { grants } from '../security/actions.js';
import { holdsOnCluster, rightsFor } from '../security/authorize.js';

/**
 * Carries out an operation of the engine.
 *
 * @param cancel stops the work; absent: it stops when the connection closes before the answer is there, where it may
 */
export async function carryOutInEngine(
  call: Call,
  endpoint: Endpoint,
  op: Operation,
  cancel: Cancel | undefined = stoppedWith(call, endpoint),
): Promise<Answer> {
  const { exchange, path, body, application } = call;
  const { engine, caller, tasks } = serving(call);
  const asText = endpoint.reply === 'text';
  const { explicit } = negotiate(exchange.header('accept'), undefined, call.query['format']);
  const { action, rights } = rightsFor(caller, endpoint);
  const query = withoutCommon(call.query);
  const request: EngineRequest = {
    op,
    path,
    // A table is made as JSON to become YAML.
    query: asText && explicit ? { ...query, format: 'json' } : query,
    requestId: call.requestId,
    opaqueId: exchange.header('x-opaque-id'),
    traceId: call.span?.traceId ?? traceOf(exchange.header('traceparent')),
    version: spokenBy(exchange),
    action,
    rights,
    named: application.audit === undefined ? undefined : (names) => void (call.named = names),
    concurrent: exchange.concurrent,
  };
  const sent = MEASURED.has(op) ? await measured(serving(call)) : body;
  if (op === 'restore_snapshot') await restoreKeys(serving(call), request, body);
  const reply =
    call.span === undefined
      ? await engine.execute(request, sent, cancel)
      : await call.span.carryOut(op, (phases) => engine.execute({ ...request, phases }, sent, cancel));
  if (call.query['wait_for_completion'] === 'false') tasks?.note(reply.body);
  let unknown = holdsMappings(op)
    ? await unknownEndpoints(engine, sent, holdsOnCluster(caller, seesEndpoints))
    : NOTHING;
  if (foundNothing(op, reply)) {
    const fieldCaps = (asked: EngineRequest): Promise<EngineReply> =>
      engine.execute({ ...asked, ...rightsFor(caller, FIELD_CAPS) });
    unknown = await unknownFields(fieldCaps, request, sent, reply.body);
  }
  const warnings = warningsOf(endpoint, call.query, reply, thatFit(unknown));
  return {
    status: reply.status,
    body: reply.body,
    type: reply.text === true ? 'text' : 'json',
    headers: reply.created === undefined ? warnings : [...location(reply), ...warnings],
    refusedParts: reply.refusedParts,
    statistics: STATISTICS.has(op),
  };
}

function stoppedWith({ exchange }: Call, { cancellable, method }: Endpoint): Cancel | undefined {
  return (cancellable ?? method === 'GET') ? exchange.onGone.bind(exchange) : undefined;
}

/** Operations whose tables show what the process uses of its machine. The engine gets that as their body. */
const MEASURED: ReadonlySet<string> = new Set(['cat_nodes', 'cat_allocation', 'cat_thread_pool']);

async function measured({ data, address }: Serving): Promise<Uint8Array> {
  return new TextEncoder().encode(JSON.stringify(await measure(data, address)));
}

/** Brings API keys back, if a restore asks for them: before it, so that none of them is missing when its indices are there. */
async function restoreKeys({ engine, keys }: Serving, restore: EngineRequest, body?: Uint8Array): Promise<void> {
  const reply = await engine.execute({ ...restore, op: 'snapshot_keys' }, body);
  const { keys: text } = JSON.parse(new TextDecoder().decode(reply.body)) as { readonly keys?: string };
  if (text !== undefined) await keys.adopt(text, Date.now());
}

function withoutCommon(query: Texts): Texts {
  const entries = Object.entries(query);
  // Most requests have none at all.
  if (entries.length === 0) return query;
  return Object.fromEntries(
    entries.filter(
      ([name]) =>
        !COMMON_PARAMS.has(name) && !changesNothing(name) && name !== 'source' && name !== 'source_content_type',
    ),
  );
}

/** Operations whose answers count bytes and milliseconds, for people too with `?human`. */
const STATISTICS: ReadonlySet<string> = new Set<Operation>([
  ...([
    'get_index',
    'get_settings',
    'list_tasks',
    'get_task',
    'list_reindex',
    'get_reindex',
    'index_stats',
    'recovery',
  ] as const),
]);

/** The rights by which fields are looked for that a search names. */
const FIELD_CAPS = { action: 'indices:data/read/field_caps' } as const;
/** Bytes of the headers with warnings about names: clients and proxies take only so much. */
const MOST_SAID = 2048;

/** Whether privileges on the cluster let a key list the inference endpoints. */
const seesEndpoints = (held: readonly string[]): boolean => grants(held, 'cluster:monitor/xpack/inference/get');

/** The first sentences, as many as there is room for in the headers. */
function thatFit(sentences: readonly string[]): readonly string[] {
  if (sentences.length === 0) return sentences;
  let room = MOST_SAID;
  return sentences.filter((sentence) => {
    room -= warning(sentence).length;
    return room >= 0;
  });
}

const NOTHING: readonly string[] = [];
const NO_HEADERS: readonly (readonly [string, string])[] = [];

function warningsOf(
  endpoint: Endpoint,
  query: Texts,
  { warnings }: EngineReply,
  unknown: readonly string[],
): typeof NO_HEADERS {
  const said = deprecations(endpoint, query);
  if (said.length === 0 && unknown.length === 0 && warnings === undefined) return NO_HEADERS;
  return [...said, ...(warnings ?? []), ...unknown].map((sentence) => ['Warning', warning(sentence)] as const);
}

/** Where a created document is. */
function location({ created }: EngineReply): typeof NO_HEADERS {
  if (created === undefined) return NO_HEADERS;
  const [index, id, routing] = created.map(encodeURIComponent);
  const query = routing === undefined ? '' : `?routing=${routing}`;
  return [['Location', `/${String(index)}/_doc/${String(id)}${query}`]];
}
