import { type BulkItem, itemNow } from './bulk-body.js';
import type { DenseField } from './dense-fields.js';
import { refusal } from './errors.js';
import {
  type Edit,
  type Span,
  decode,
  edited,
  elements,
  isJson,
  kindAt,
  members,
  parse,
  valueOf,
  whole,
} from './json.js';
import { failureOf } from './pipelines.js';
import type { VectorFields, Watched } from './vector-fields.js';
import { dimsOf, documentVector, vectorProblem } from './vector-values.js';

export type { VectorFields } from './vector-fields.js';

/**
 * The body of a write with its vectors as the cluster takes them; the same bytes where there is nothing to change.
 *
 * @throws {EngineError} 400 `document_parsing_exception`
 */
export async function sentVectors(
  vectors: VectorFields,
  index: string,
  body: Uint8Array | undefined,
  kind?: 'update',
): Promise<Uint8Array | undefined> {
  const watched = body === undefined ? undefined : await vectors.watched(index);
  if (body === undefined || watched === undefined) return body;
  const source = decode(body);
  parse(source);
  const changed = withVectors(source, watched, kind);
  return changed === undefined ? body : Buffer.from(changed);
}

/**
 * The same for the items of a bulk request.
 *
 * @param changed lines by the positions of items, which pipelines made and to which lines with other vectors are added
 * @param own answers to items that do not reach the cluster, by their positions
 */
export async function bulkVectors(
  vectors: VectorFields,
  items: readonly BulkItem[],
  changed: Map<number, string>,
  own: Map<number, string>,
): Promise<void> {
  const known = new Map<string, Watched | undefined>();
  for (const item of items) {
    const { position } = item;
    if (own.has(position) || item.kind === 'delete') continue;
    const now = itemNow(item, changed);
    if (!known.has(now.index)) known.set(now.index, await vectors.watched(now.index));
    const watched = known.get(now.index);
    if (watched === undefined) continue;
    try {
      const made = withVectors(now.source, watched, item.kind === 'update' ? 'update' : undefined);
      if (made !== undefined) {
        const { index, id, routing } = now;
        changed.set(position, item.rewritten({ index, id, routing, source: made }));
      }
    } catch (error) {
      own.set(position, item.failed(failureOf(error)));
    }
  }
}

/**
 * A document with the vectors that it has as texts in the form of arrays.
 *
 * @param kind `update` for the body of an update, which has documents in `doc` and `upsert`
 * @returns undefined where the document is to be sent as it is
 * @throws {EngineError} 400 `document_parsing_exception` for a vector that the native engine refuses
 */
export function withVectors(source: string, { fields, always }: Watched, kind?: 'update'): string | undefined {
  const suspects = [...fields].filter(([path]) => always.has(path) || hasText(source, path));
  if (suspects.length === 0 || !isJson(source)) return undefined;
  const all = whole(source);
  const edits: Edit[] = [];
  for (const [path, field] of suspects) {
    const places = kind === 'update' ? [`doc.${path}`, `upsert.${path}`] : [path];
    for (const span of places.flatMap((place) => valuesAt(source, all, place))) {
      const edit = checked(source, span, path, field);
      if (edit !== undefined) edits.push(edit);
    }
  }
  return edits.length === 0 ? undefined : edited(source, edits);
}

/** Looks at one vector of a document; a text becomes an array. */
function checked(source: string, span: Span, path: string, field: DenseField): Edit | undefined {
  const value = valueOf(source, span);
  let vector: readonly number[];
  if (typeof value === 'string') {
    const decoded = documentVector(value, field);
    if ('problem' in decoded) throw unfit(decoded.problem);
    ({ vector } = decoded);
    const given = dimsOf(field.element, vector.length);
    if (field.dims !== undefined && given !== field.dims) {
      const kind = given > field.dims ? 'more dimensions' : `a different number of dimensions [${String(given)}]`;
      throw unfit(`The [dense_vector] field [${path}] has ${kind} than defined in the mapping [${String(field.dims)}]`);
    }
  } else if (Array.isArray(value) && value.every((it) => typeof it === 'number')) {
    vector = value;
  } else {
    // The cluster says what is wrong with it.
    return undefined;
  }
  const problem = vectorProblem(field, vector);
  if (problem !== undefined) throw unfit(problem);
  return typeof value === 'string' ? { ...span, text: JSON.stringify(vector) } : undefined;
}

function unfit(reason: string): Error {
  const cause = { type: 'illegal_argument_exception', reason };
  return refusal(400, 'document_parsing_exception', `failed to parse: ${reason}`, cause);
}

/** Behind the name of a member: that its value is a string. */
const VALUE_TEXT = /\s*:\s*"/uy;

/** Whether a text may have a string as the value of a field; most documents have arrays, and need not be taken apart. */
function hasText(source: string, path: string): boolean {
  if (source.includes('\\u')) return true;
  // Behind the last dot, a name ends in any form of the path.
  const name = JSON.stringify(path.slice(path.lastIndexOf('.') + 1)).slice(1);
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + 1)) {
    VALUE_TEXT.lastIndex = at + name.length;
    if (VALUE_TEXT.test(source)) return true;
  }
  return false;
}

/** Where the values of a field stand in a document: its path may be written with dots or as objects. */
function valuesAt(source: string, span: Span, path: string): readonly Span[] {
  if (kindAt(source, span) === 'array')
    return elements(source, span.start).flatMap((one) =>
      kindAt(source, one) === 'object' ? valuesAt(source, one, path) : [],
    );
  if (kindAt(source, span) !== 'object') return [];
  return members(source, span.start).flatMap((member) => {
    if (member.name === path) return [member];
    return path.startsWith(`${member.name}.`) ? valuesAt(source, member, path.slice(member.name.length + 1)) : [];
  });
}
