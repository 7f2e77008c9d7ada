import type { EngineReply, EngineRequest } from '@sparrow-search/engine';

import { bulk } from './bulk.js';
import { itemsIn } from './bulk-body.js';
import { pipelineOf } from './default-pipelines.js';
import { type Cause, illegal, refusal } from './errors.js';
import { decode, isObject, isSet, oneLine, parse } from './json.js';
import { type Given, noteModels } from './pipelines.js';
import { replyOf } from './replies.js';
import { sentPassages } from './semantic-documents.js';
import { complete, updateDocument } from './semantic-updates.js';
import { upsertOf } from './upserts.js';
import { sentVectors } from './vector-documents.js';
import { NONE, type Writing, asNative, checkWrite, documentsOf } from './writing.js';

/** Answers `PUT|POST _doc` and `_create`. */
export async function writeDocument(
  context: Writing,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const { index = '', id } = request.path;
  const creates = request.op === 'create_doc' || request.query['op_type'] === 'create' || id === undefined;
  await checkWrite(context, request, index, creates ? 'create' : 'index');
  const pipeline = await pipelineOf(context, request.query['pipeline'], index);
  const query: Readonly<Record<string, string>> = { ...request.query, pipeline: NONE };
  if (body === undefined || (pipeline === undefined && (await context.finals.of(index)) === undefined)) {
    return sendWhole(context, request, index, id, query, body);
  }
  await context.pipelines.sync();
  const source = decode(body);
  if (!isObject(parse(source))) throw illegal('a document has to be an object');
  const given = { index, id, routing: query['routing'], source };
  const first = pipeline === undefined ? given : await through(context, pipeline, given);
  // A pipeline may have sent the document to another index, whose final pipeline then counts, if the caller may write there.
  if (first !== undefined && first.index !== index) {
    await checkWrite(context, request, first.index, creates ? 'create' : 'index');
  }
  const last = first === undefined ? undefined : await context.finals.of(first.index);
  const made = first === undefined || last === undefined ? first : await through(context, last, first);
  if (made === undefined) return dropped(index, id);
  if (made.index !== index && made.index !== first?.index) {
    await checkWrite(context, request, made.index, creates ? 'create' : 'index');
  }
  const routed = made.routing === undefined ? query : { ...query, routing: made.routing };
  const reply = await sendWhole(context, request, made.index, made.id, routed, Buffer.from(made.source));
  for (const ran of [pipeline, last])
    if (ran !== undefined && reply.status < 300) await noteModels(context, ran, [made.index]);
  return reply;
}

/** What a pipeline makes of a document; undefined where it drops it. */
async function through({ pipelines }: Writing, pipeline: string, document: Given): Promise<Given | undefined> {
  const [made] = await pipelines.run(pipeline, [document]);
  if (made?.kind === 'failed') {
    const cause = JSON.parse(made.error) as { type: string; reason: string; caused_by?: unknown };
    throw refusal(made.status, cause.type, cause.reason, cause.caused_by);
  }
  return made?.kind === 'document' ? made : undefined;
}

/** Sends a document with its vectors and passages. */
async function sendWhole(
  context: Writing,
  request: EngineRequest,
  index: string,
  id: string | undefined,
  query: Readonly<Record<string, string>>,
  document: Uint8Array | undefined,
): Promise<EngineReply> {
  const since = performance.now();
  const { vectors, semantic, dynamic } = context;
  if (document !== undefined) await dynamic.prepare(index, () => [decode(document)], isSet(query['require_alias']));
  const { body, made } = await sentPassages(semantic, index, await sentVectors(vectors, index, document));
  const reply = await send(context, request, index, id, query, body);
  if (made.length > 0 && reply.status < 300) {
    const { _index: of, _id: written } = JSON.parse(Buffer.from(reply.body).toString()) as Record<string, string>;
    await complete(context, made, since, [{ index: of ?? index, id: written ?? '', routing: query['routing'] }]);
  }
  return reply;
}

/** Answers `DELETE _doc` and `POST _update`: no pipeline runs before either. */
export async function changeDocument(
  context: Writing,
  request: EngineRequest,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const { index = '', id = '' } = request.path;
  const isUpdate = request.op === 'update_doc';
  await checkWrite(context, request, index, isUpdate ? 'update' : 'delete');
  const upsert = isUpdate && body !== undefined ? upsertOf(decode(body)) : undefined;
  const pipeline = upsert === undefined ? undefined : await pipelineOf(context, undefined, index);
  const last = upsert === undefined ? undefined : await context.finals.of(index);
  if (body !== undefined && (pipeline ?? last) !== undefined)
    return updateThrough(context, request, body, pipeline ?? NONE);
  if (isUpdate && body !== undefined) {
    const onlyAlias = isSet(request.query['require_alias']);
    await context.dynamic.prepare(index, () => documentsOf(decode(body)), onlyAlias);
  }
  const known = isUpdate ? await context.semantic.writtenTo(index) : undefined;
  if (known !== undefined && body !== undefined) {
    const sent = (await sentVectors(context.vectors, index, body, 'update')) ?? body;
    return asNative(await updateDocument(context, request, known, sent));
  }
  return asNative(
    replyOf(
      await context.transport.ask({
        method: isUpdate ? 'POST' : 'DELETE',
        path: `/${encodeURIComponent(index)}/${isUpdate ? '_update' : '_doc'}/${encodeURIComponent(id)}`,
        query: request.query,
        body: isUpdate ? await sentVectors(context.vectors, index, body, 'update') : body,
      }),
    ),
  );
}

/** Parameters of an update that stand at its item in a bulk request, and those of the request itself. */
const OF_ITEM = ['routing', 'retry_on_conflict', 'if_seq_no', 'if_primary_term', '_source', 'require_alias'];
/** Those of them that are numbers; a value for routing is a text, whatever its letters. */
const NUMBERS: ReadonlySet<string> = new Set(['retry_on_conflict', 'if_seq_no', 'if_primary_term']);
const OF_REQUEST = ['refresh', 'timeout', 'wait_for_active_shards'];

/** An update whose document goes through a pipeline: as a bulk request, in which the cluster can be told that none of its own runs. */
async function updateThrough(
  context: Writing,
  request: EngineRequest,
  document: Uint8Array,
  pipeline: string,
): Promise<EngineReply> {
  const { index = '', id = '' } = request.path;
  const parametersOf = (names: readonly string[]): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(request.query).filter(([name]) => names.includes(name)));
  const given = Object.entries(parametersOf(OF_ITEM)).map(([name, value]) => [
    name,
    NUMBERS.has(name) && /^\d+$/.test(value) ? Number(value) : value,
  ]);
  const action = JSON.stringify({ update: { _index: index, _id: id, ...(Object.fromEntries(given) as object) } });
  const body = Buffer.from(`${action}\n${oneLine(decode(document))}\n`);
  const asked = { ...request, op: 'bulk', path: {}, query: { ...parametersOf(OF_REQUEST), pipeline } } as const;
  const reply = await bulk(context, asked, body);
  if (reply.status !== 200) return reply;
  const [item = '{}'] = itemsIn(Buffer.from(reply.body).toString());
  const { status, error, ...rest } = (JSON.parse(item) as { update: { status: number; error?: Cause } }).update;
  if (error !== undefined) throw refusal(status, error.type, error.reason);
  return asNative({ status, body: Buffer.from(JSON.stringify(rest)) });
}

async function send(
  { transport }: Writing,
  request: EngineRequest,
  index: string,
  id: string | undefined,
  query: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): Promise<EngineReply> {
  const endpoint = request.op === 'create_doc' ? '_create' : '_doc';
  const path = `/${encodeURIComponent(index)}/${endpoint}${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;
  return asNative(replyOf(await transport.ask({ method: id === undefined ? 'POST' : 'PUT', path, query, body })));
}

function dropped(index: string, id: string | undefined): EngineReply {
  const shards = { total: 0, successful: 0, failed: 0 };
  const body = { _index: index, _id: id ?? null, _version: -3, result: 'noop', _shards: shards };
  return { status: 200, body: Buffer.from(JSON.stringify(body)) };
}
