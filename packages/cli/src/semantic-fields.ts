import type { Property } from '@sparrow-search/endpoints';

import { MEANING_FIELD, type Vectors, fieldAt } from './documents/file-mapping.js';
import { CommandError } from './errors.js';
import type { Mapping } from './mappings.js';
import { type Vector, kindsOf } from './searched-fields.js';
import { number } from './terminal.js';

export const VECTORS = ['hybrid', 'sparse', 'dense'] as const satisfies readonly Vectors[];

type Document = Readonly<Record<string, unknown>>;

/** The kinds of vectors that each of them makes. */
const KINDS: Readonly<Record<Vectors, readonly Vector[]>> = {
  hybrid: ['sparse', 'dense'],
  sparse: ['sparse'],
  dense: ['dense'],
};

/** Fields that are named to who asked for one that is not there. */
const MOST_NAMED = 20;
/** Objects in objects, and lists in lists, in which fields are looked for. */
const MOST_DEPTH = 20;

/**
 * Refuses another kind of vectors for a field that has documents: only a change of its model gives them others.
 *
 * @param mapping the mapping of the index
 * @throws {CommandError} with what can be done instead
 */
export function refuseOtherVectors(index: string, { properties = {} }: Mapping, vectors: Vectors): void {
  const property = fieldAt(properties, MEANING_FIELD);
  if (!holdsVectors(property)) return;
  const kinds = kindsOf(property);
  if (kinds.join() === KINDS[vectors].join()) return;
  throw new CommandError(
    `the documents in [${index}] have ${kinds.join(' and ')} vectors in [${MEANING_FIELD}], which \`--vectors ${vectors}\` cannot replace: leave it out to keep them, choose another index with --index, or change the model of the field with \`POST /${index}/_ext/model/_change\``,
  );
}

/** Whether a property is that of a field whose documents have vectors: its model cannot be changed by its mapping any more. */
export function holdsVectors(property: Property | undefined): property is Property {
  return property?.type === 'semantic_text' && property.model_settings !== undefined;
}

/** Which of the fields that an option names the first documents of a file have. */
export class FieldsSeen {
  readonly #option: string;
  readonly #namesOf: (document: Document) => Iterable<string>;
  readonly #missing: Set<string>;
  readonly #there = new Set<string>();
  #documents = 0;

  /**
   * @param option the option, such as `--id`
   * @param wanted the fields that it names
   * @param namesOf the fields of a document that it can name
   */
  constructor(option: string, wanted: readonly string[], namesOf: (document: Document) => Iterable<string>) {
    this.#option = option;
    this.#missing = new Set(wanted);
    this.#namesOf = namesOf;
  }

  /** Documents that were looked at. */
  get documents(): number {
    return this.#documents;
  }

  get isComplete(): boolean {
    return this.#missing.size === 0;
  }

  add(document: Document): void {
    this.#documents += 1;
    for (const name of this.#namesOf(document)) {
      this.#missing.delete(name);
      if (this.#there.size <= MOST_NAMED && name !== '_id') this.#there.add(name);
    }
  }

  /** A sentence about a wanted field that none of the documents has, if there is one; `isAll`: the file has no other documents. */
  problem(isAll: boolean, one: 'field' | 'column'): string | undefined {
    const [name] = this.#missing;
    if (name === undefined || this.#documents === 0) return undefined;
    const there = [...this.#there];
    const named = `${there.slice(0, MOST_NAMED).join(', ')}${there.length > MOST_NAMED ? ' …' : ''}`;
    if (one === 'column') return `there is no column [${name}] for ${this.#option}; the columns are ${named}`;
    const none = isAll
      ? `no document has the field [${name}]`
      : this.#documents === 1
        ? `the first document has no field [${name}]`
        : `none of the first ${number(this.#documents)} documents has the field [${name}]`;
    return `${none} for ${this.#option}; the fields are ${named || 'none'}`;
  }
}

/** The names of the fields in a document; those in objects have the names of the objects before theirs. */
export function* namesIn(value: unknown, prefix = '', depth = 0): Generator<string> {
  if (typeof value !== 'object' || value === null || depth > MOST_DEPTH) return;
  if (Array.isArray(value)) {
    for (const one of value) yield* namesIn(one, prefix, depth + 1);
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    if (!isObject) yield prefix + name;
    yield* namesIn(inner, `${prefix}${name}.`, depth + 1);
  }
}
