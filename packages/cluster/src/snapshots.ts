import { randomBytes } from 'node:crypto';

import type { EngineReply, EngineRequest, Operation, SearchEngine } from '@sparrow-search/engine';

import { notOverCluster, refusal } from './errors.js';
import { pathOf } from './forward.js';
import { type Json, decode, isObject, parseAnswer, parseRequest, textOf, without } from './json.js';
import { type Names, RESERVED } from './names.js';
import type { Product } from './product.js';
import { passedOn, replyOf } from './replies.js';
import { KEYS_INDEX, type Shared, STATE_INDEX, type SharedState, textIn } from './shared-state.js';
import type { Asked, Transport } from './transport.js';

interface Context {
  readonly native: SearchEngine;
  readonly transport: Transport;
  readonly product: Product;
  readonly names: Names;
  readonly state: SharedState;
}

/** Operations about repositories and snapshots that the cluster carries out as they are. */
const PASSED_ON: Partial<Record<Operation, string>> = {
  put_repository: 'PUT /_snapshot/{repository}',
  get_repository: 'GET /_snapshot/{repository}',
  delete_repository: 'DELETE /_snapshot/{repository}',
  verify_repository: 'POST /_snapshot/{repository}/_verify',
  cleanup_repository: 'POST /_snapshot/{repository}/_cleanup',
  get_snapshot: 'GET /_snapshot/{repository}/{snapshot}',
  snapshot_status: 'GET /_snapshot/{repository}/{snapshot}/_status',
  delete_snapshot: 'DELETE /_snapshot/{repository}/{snapshot}',
  cat_repositories: 'GET /_cat/repositories',
  cat_snapshots: 'GET /_cat/snapshots/{repository}',
};

/** What of Sparrow's own state belongs to the global state of a snapshot, as the names of shared texts. */
const GLOBAL = ['pipelines', 'endpoints'] as const;

/** Whether an operation is one of {@link snapshots}. */
export function isOfSnapshots(op: Operation): boolean {
  return op in PASSED_ON || ['create_snapshot', 'clone_snapshot', 'restore_snapshot', 'snapshot_keys'].includes(op);
}

/**
 * Answers what concerns snapshots, which are the cluster's own. Beside its global state, a snapshot has the hidden index with what Sparrow
 * keeps for all servers, and beside the API keys of a cluster, the one with Sparrow's.
 */
export async function snapshots(
  context: Context,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const { op, path, rights } = request;
  const row = PASSED_ON[op];
  if (row !== undefined) {
    const [method = '', pattern = ''] = row.split(' ');
    const query = withoutThose(request.query, context.product);
    const answered = await context.transport.ask({
      method: method as Asked['method'],
      path: pathOf(pattern, path),
      query,
      body: method === 'GET' ? undefined : body,
      repeatable: method === 'GET',
    });
    return op === 'get_snapshot' || op === 'snapshot_status' ? withoutOwn(replyOf(answered)) : replyOf(answered);
  }
  if (rights !== undefined) throw notOverCluster('a snapshot, for a key that may use some indices only,');
  const given = body === undefined || body.length === 0 ? {} : parseRequest(decode(body));
  const asked = isObject(given) ? given : {};
  if (op === 'clone_snapshot') return clone(context, request, asked);
  if (op === 'create_snapshot') return create(context, request, asked);
  if (op === 'snapshot_keys') return keys(context, request, asked);
  return restore(context, request, asked);
}

/** OpenSearch deletes a snapshot before it answers. */
function withoutThose(query: EngineRequest['query'], { name }: Product): EngineRequest['query'] {
  if (name !== 'OpenSearch') return query;
  return without(query, 'wait_for_completion') as EngineRequest['query'];
}

async function create(context: Context, request: EngineRequest, asked: Json): Promise<EngineReply> {
  await refuseModels(context.native, asked);
  const { feature_states: features, indices } = asked;
  const isGlobal = isTrue(asked['include_global_state'] ?? true);
  const own = [...(isGlobal ? [STATE_INDEX] : []), ...(wantsKeys(features) ? [KEYS_INDEX] : [])];
  const named = await namesOf(context.names, request, indices);
  const answered = await context.transport.ask({
    method: 'PUT',
    path: pathOf('/_snapshot/{repository}/{snapshot}', request.path),
    query: request.query,
    body: sent(context.product, asked, [...named, ...own]),
  });
  return withoutOwn(replyOf(answered));
}

async function clone(context: Context, request: EngineRequest, asked: Json): Promise<EngineReply> {
  const indices = (await namesOf(context.names, request, asked['indices'])).join(',');
  return replyOf(
    await context.transport.ask({
      method: 'PUT',
      path: pathOf('/_snapshot/{repository}/{snapshot}/_clone/{target_snapshot}', request.path),
      query: request.query,
      body: JSON.stringify({ ...asked, indices }),
    }),
  );
}

async function restore(context: Context, request: EngineRequest, asked: Json): Promise<EngineReply> {
  await refuseModels(context.native, asked);
  const replacement = textOf(asked['rename_replacement']) ?? '';
  if (replacement.startsWith(RESERVED))
    throw refusal(
      400,
      'invalid_index_name_exception',
      `Invalid index name [${replacement}], names that begin with [${RESERVED}] are reserved`,
    );
  const named = await namesOf(context.names, request, asked['indices']);
  const answered = await context.transport.ask({
    method: 'POST',
    path: pathOf('/_snapshot/{repository}/{snapshot}/_restore', request.path),
    query: request.query,
    body: sent(context.product, asked, named),
  });
  if (answered.status === 200 && isTrue(asked['include_global_state'] ?? false)) {
    await restored(context, request, STATE_INDEX, async (index) => {
      for (const id of GLOBAL) await bringBack(context, index, id);
    });
  }
  return withoutOwn(replyOf(answered));
}

/** Answers with the API keys of a snapshot, if a restore asks for them. The HTTP layer, which keeps the keys, decides which it takes. */
async function keys(context: Context, request: EngineRequest, asked: Json): Promise<EngineReply> {
  let text: string | undefined;
  if (wantsKeys(asked['feature_states'])) {
    await restored(context, request, KEYS_INDEX, async (index) => {
      text = (await readFrom(context, index, 'api_keys'))?.text;
    });
  }
  return { status: 200, body: Buffer.from(JSON.stringify(text === undefined ? {} : { keys: text })) };
}

/**
 * Restores one of Sparrow's own indices under a name of its own, and removes it once it is read: its servers use the one that is there.
 *
 * @param use is not called for a snapshot without that index
 */
async function restored(
  { transport }: Context,
  { path }: EngineRequest,
  index: string,
  use: (index: string) => Promise<void>,
): Promise<void> {
  const name = `${RESERVED}restored-${randomBytes(6).toString('hex')}`;
  const listed = await transport.json({ method: 'GET', path: pathOf('/_snapshot/{repository}/{snapshot}', path) });
  const all =
    isObject(listed.body) && Array.isArray(listed.body['snapshots']) ? (listed.body['snapshots'] as unknown[]) : [];
  const held = all.flatMap((one) =>
    isObject(one) && Array.isArray(one['indices']) ? (one['indices'] as unknown[]) : [],
  );
  if (!held.includes(index)) return;
  const answered = await transport.ask({
    method: 'POST',
    path: pathOf('/_snapshot/{repository}/{snapshot}/_restore', path),
    query: { wait_for_completion: 'true' },
    body: JSON.stringify({
      ...{ indices: index, include_global_state: false, include_aliases: false },
      ...{ rename_pattern: '.+', rename_replacement: name },
    }),
  });
  if (answered.status !== 200) throw passedOn(answered);
  try {
    await use(name);
  } finally {
    await transport.ask({ method: 'DELETE', path: `/${name}`, repeatable: true });
  }
}

/** Puts a text of a snapshot in the place of the one that servers share. Endpoints replace only those of the same name. */
async function bringBack(context: Context, index: string, id: (typeof GLOBAL)[number]): Promise<void> {
  const text = (await readFrom(context, index, id))?.text;
  if (text === undefined) return;
  await context.state.change(id, (now) => (id === 'endpoints' ? merged(now, text, id) : text));
}

function merged(before: string | undefined, text: string, kind: string): string {
  const [old, fresh] = [JSON.parse(before ?? '{}') as Json, JSON.parse(text) as Json];
  return JSON.stringify({ ...fresh, [kind]: { ...(old[kind] as Json | undefined), ...(fresh[kind] as Json) } });
}

async function readFrom({ transport }: Context, index: string, id: string): Promise<Shared | undefined> {
  return textIn(id, await transport.json({ method: 'GET', path: `/${index}/_doc/${id}` }));
}

/** The indices that a snapshot is to hold, without Sparrow's own. */
async function namesOf(names: Names, request: EngineRequest, given: unknown): Promise<readonly string[]> {
  const listed = Array.isArray(given) ? given.map(String).join(',') : textOf(given);
  // `-*` stands for none, and a lone exclusion for all others.
  const first = listed === undefined || listed === '' || listed === '_all' ? '*' : listed;
  // So that Sparrow's own are no part of these others.
  const wanted = first.startsWith('-') ? `*,${first}` : first;
  const expression = await names.expression(request, wanted);
  return expression?.split(',') ?? [`-*`];
}

/** @throws {EngineError} 400 where this server has models that would be missing in the snapshot */
async function refuseModels(native: SearchEngine, { include_models: wanted }: Json): Promise<void> {
  if (wanted !== true && wanted !== 'true') return;
  const { body } = await native.execute({ op: 'get_trained_models', path: {}, query: { size: '1000' } });
  const { trained_model_configs: models } = parseAnswer(Buffer.from(body)) as {
    readonly trained_model_configs: readonly { readonly model_id: string }[];
  };
  const uploaded = models.map(({ model_id: id }) => id).filter((id) => !id.startsWith('.'));
  if (uploaded.length === 0) return;
  throw notOverCluster(
    `[include_models] on a server with models of its own, [${uploaded.join(', ')}],`,
    'they are in its data directory, and in no index: copy them, and leave the option out',
  );
}

/** @throws {EngineError} 400 for the state of another feature than API keys */
function wantsKeys(features: unknown): boolean {
  if (features === undefined) return false;
  const all = [features].flat().map(String);
  const other = all.find((it) => it !== 'security' && it !== 'none');
  if (other !== undefined) {
    throw refusal(
      400,
      'illegal_argument_exception',
      `Requested snapshot of feature states [${other}], but only [security] and [none] are known`,
    );
  }
  return all.includes('security');
}

/** A body as the cluster gets it. Elasticsearch would take the state of its own features beside the global state. */
function sent({ name }: Product, asked: Json, indices: readonly string[]): string {
  const others = without(asked, 'feature_states', 'include_models');
  const features = name === 'Elasticsearch' ? { feature_states: ['none'] } : {};
  return JSON.stringify({ ...others, indices: indices.join(','), ...features });
}

/** An answer about snapshots without Sparrow's own indices; what they hold is shown as the native engine does. */
function withoutOwn(reply: EngineReply): EngineReply {
  if (reply.status !== 200 || !Buffer.from(reply.body).includes(RESERVED)) return reply;
  const shown = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.filter((it) => !isOwn(it)).map(shown);
    if (!isObject(value)) return value;
    const kept = Object.entries(value).filter(([name]) => !isOwn(name));
    const hasKeys = Array.isArray(value['indices']) && value['indices'].includes(KEYS_INDEX);
    const features = hasKeys ? { feature_states: [{ feature_name: 'security', indices: [] }] } : {};
    return { ...Object.fromEntries(kept.map(([name, inner]) => [name, shown(inner)])), ...features };
  };
  return { ...reply, body: Buffer.from(JSON.stringify(shown(JSON.parse(Buffer.from(reply.body).toString())))) };
}

function isOwn(name: unknown): boolean {
  return typeof name === 'string' && name.startsWith(RESERVED);
}

function isTrue(value: unknown): boolean {
  return value === true || value === 'true';
}
