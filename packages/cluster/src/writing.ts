import type { EngineReply } from '@sparrow-search/engine';

import type { BulkKind } from './bulk-body.js';
import type { DynamicFields } from './dynamic-fields.js';
import { notOverCluster, refusal } from './errors.js';
import type { FieldModels } from './field-models.js';
import type { FinalPipelines } from './final-pipelines.js';
import { asBuffer, isJson, members, rawOf, whole } from './json.js';
import type { Asker, Names } from './names.js';
import type { Pipelines } from './pipelines.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';
import type { VectorFields } from './vector-documents.js';

/** What writes need of their surroundings. */
export interface Writing {
  readonly transport: Transport;
  readonly names: Names;
  readonly pipelines: Pipelines;
  readonly models: FieldModels;
  readonly vectors: VectorFields;
  readonly semantic: SemanticFields;
  readonly finals: FinalPipelines;
  readonly dynamic: DynamicFields;
}

/** The value by which a request says that no pipeline runs. */
export const NONE = '_none';

const WRITE_ACTIONS = {
  index: 'indices:data/write/index:op_type/index',
  create: 'indices:data/write/index:op_type/create',
  update: 'indices:data/write/update',
  delete: 'indices:data/write/delete',
} as const satisfies Readonly<Record<BulkKind, string>>;

/** Checks that a caller may write to an index, and make it where it is not there. */
export async function checkWrite(
  { names, transport }: Pick<Writing, 'names' | 'transport'>,
  request: Asker,
  index: string,
  kind: BulkKind,
): Promise<void> {
  await names.check(request, [index], WRITE_ACTIONS[kind]);
  if (request.rights === undefined || kind === 'delete') return;
  const { status } = await transport.ask({ method: 'HEAD', path: `/${encodeURIComponent(index)}` });
  // Writing to a name that is not there makes an index.
  if (status === 404) await names.check(request, [index], 'indices:admin/auto_create');
  else if (status !== 200)
    throw refusal(status, 'cluster_answer_exception', `the cluster does not say whether [${index}] is there`);
}

/**
 * The documents in the body of an update, for the dynamic templates of Sparrow's that an index has.
 *
 * @throws {EngineError} 400 for a script: nobody knows which fields it adds before the cluster has made them by itself
 */
export function documentsOf(body: string): readonly string[] {
  const parts = isJson(body) ? members(body, whole(body).start) : [];
  if (parts.some(({ name }) => name === 'script'))
    throw notOverCluster(`a script of an update ${WITH_TEMPLATES}`, 'send the changes as [doc]');
  return parts.flatMap((it) => (it.name === 'doc' || it.name === 'upsert' ? [rawOf(body, it)] : []));
}

/** Where no script may write. */
export const WITH_TEMPLATES = 'in an index whose dynamic templates bring vectors';

/** Errors of OpenSearch about documents by which clients know them: the sentence about too many fields, and vectors that do not fit. */
export function asNative(reply: EngineReply): EngineReply {
  const bytes = asBuffer(reply.body);
  if (!bytes.includes('Limit of total fields [') && !bytes.includes('of type [knn_vector]')) return reply;
  const text = bytes
    .toString()
    .replaceAll(/(Limit of total fields \[\d+\] has been exceeded)(?! while)/g, '$1 while adding new fields')
    .replaceAll(
      /"mapper_parsing_exception"(,"reason":"failed to parse field \[[^\]]*\] of type )\[knn_vector\]/g,
      '"document_parsing_exception"$1[dense_vector]',
    );
  return { ...reply, body: Buffer.from(text) };
}
