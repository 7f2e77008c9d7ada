import {
  type Cancel,
  EngineError,
  type EngineReply,
  type EngineRequest,
  type SearchEngine,
} from '@sparrow-search/engine';

import type { FieldModels, Use } from './field-models.js';
import { elements, isObject, members, rawOf, textOf, valueOf, whole, without } from './json.js';
import { type Definitions, SharedDefinitions } from './shared-definitions.js';
import type { SharedState } from './shared-state.js';

/** Documents that go through a pipeline together: fewer than a deployment's queue holds, more than a batch of the encoder. */
const BATCH = 64;

/** A document before a pipeline. */
export interface Given {
  readonly index: string;
  readonly id?: string | undefined;
  readonly routing?: string | undefined;
  /** Its source as it is written. */
  readonly source: string;
}

/** What a pipeline made of a document. */
export type Outcome =
  | ({ readonly kind: 'document' } & Given)
  | { readonly kind: 'dropped' }
  | { readonly kind: 'failed'; readonly status: number; readonly error: string };

/**
 * Pipelines: kept in the cluster for all of Sparrow's nodes, and run by the native engine of each, which has a copy. Before one
 * is used, the copy is compared with what the cluster has.
 */
export class Pipelines {
  readonly #native: SearchEngine;
  readonly #shared: SharedDefinitions;
  /** The definitions as {@link fills} looks through them. */
  #uses: Promise<Definitions> | undefined;

  constructor(native: SearchEngine, state: SharedState) {
    this.#native = native;
    this.#shared = new SharedDefinitions(state, 'pipelines', {
      read: () => this.#nativeDefinitions(),
      put: (id, definition) => {
        this.#uses = undefined;
        const request: EngineRequest = { op: 'put_pipeline', path: { pipeline: id }, query: {} };
        return native.execute(request, Buffer.from(JSON.stringify(definition)));
      },
      remove: (id) => {
        this.#uses = undefined;
        return native.execute({ op: 'delete_pipeline', path: { pipeline: id }, query: {} });
      },
    });
  }

  /** Answers an operation that reads pipelines, or runs one on documents of the request. */
  async read(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    await this.sync();
    return this.#native.execute(request, body, cancel);
  }

  /** Answers `PUT` and `DELETE` of a pipeline: checked and made by the native engine, then kept for all. */
  change(request: EngineRequest, body?: Uint8Array): Promise<EngineReply> {
    return this.#shared.change(() => {
      this.#uses = undefined;
      return this.#native.execute(request, body);
    });
  }

  /** Makes the copy what the cluster has, if it is not. */
  async sync(): Promise<void> {
    await this.#shared.sync();
  }

  /**
   * Runs a pipeline on documents.
   *
   * @throws {EngineError} 400 for a pipeline that is not there; what concerns one document stands in its outcome
   */
  async run(pipeline: string, documents: readonly Given[], cancel?: Cancel): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let at = 0; at < documents.length; at += BATCH) {
      outcomes.push(...(await this.#batch(pipeline, documents.slice(at, at + BATCH), cancel)));
    }
    return outcomes;
  }

  async #batch(pipeline: string, documents: readonly Given[], cancel?: Cancel): Promise<readonly Outcome[]> {
    const given = documents.map(({ index, id, routing, source }) => {
      const metadata = {
        _index: index,
        ...(id === undefined ? {} : { _id: id }),
        ...(routing === undefined ? {} : { _routing: routing }),
      };
      return `${JSON.stringify(metadata).slice(0, -1)},"_source":${source}}`;
    });
    const request: EngineRequest = { op: 'simulate_pipeline', path: { pipeline }, query: {} };
    const { body } = await this.#native.execute(request, Buffer.from(`{"docs":[${given.join(',')}]}`), cancel);
    const text = Buffer.from(body).toString();
    const docs = members(text, whole(text).start).find(({ name }) => name === 'docs');
    const results = docs === undefined ? [] : elements(text, docs.start);
    return documents.map((document, at) => {
      const result = results[at];
      return result === undefined ? { kind: 'dropped' } : outcome(document, rawOf(text, result));
    });
  }

  /** The fields that a pipeline lets models fill, as far as its definition tells. */
  async fills(pipeline: string): Promise<readonly Use[]> {
    this.#uses ??= this.#nativeDefinitions().catch((error: unknown) => {
      this.#uses = undefined;
      throw error;
    });
    const all = await this.#uses;
    return usesIn(all[pipeline], all, 0);
  }

  async #nativeDefinitions(): Promise<Definitions> {
    const { status, body } = await this.#native.execute({ op: 'get_pipeline', path: {}, query: {} });
    return status === 404 ? {} : (JSON.parse(Buffer.from(body).toString()) as Definitions);
  }
}

/** Deepest that pipelines name each other. */
const MAX_DEPTH = 16;

/** Fields that inference processors in a definition fill, also those of pipelines that it names. */
function usesIn(value: unknown, all: Definitions, depth: number): readonly Use[] {
  if (depth > MAX_DEPTH) return [];
  if (Array.isArray(value)) return value.flatMap((it) => usesIn(it, all, depth));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (!isObject(inner)) return usesIn(inner, all, depth);
    if (name === 'pipeline' && typeof inner['name'] === 'string') return usesIn(all[inner['name']], all, depth + 1);
    const { model_id: id, input_output: pairs } = inner;
    if (name !== 'inference' || typeof id !== 'string') return usesIn(inner, all, depth);
    return (Array.isArray(pairs) ? (pairs as unknown[]) : [pairs]).flatMap((pair) => {
      const field = isObject(pair) ? pair['output_field'] : undefined;
      return typeof field === 'string' ? [{ field, id }] : [];
    });
  });
}

/** Writes down, once documents are written, which models filled their fields on the way through a pipeline. */
export async function noteModels(
  { pipelines, models }: { readonly pipelines: Pipelines; readonly models: FieldModels },
  pipeline: string,
  indices: Iterable<string>,
): Promise<void> {
  try {
    const uses = await pipelines.fills(pipeline);
    if (uses.length === 0) return;
    for (const index of indices) await models.note(index, uses);
  } catch (error) {
    // The documents are written, and the next ones are noted.
    if (!(error instanceof EngineError)) throw error;
  }
}

/** What one result of a simulation says about its document. */
function outcome(document: Given, result: string): Outcome {
  if (result === 'null') return { kind: 'dropped' };
  const [first] = members(result, 0);
  if (first?.name !== 'doc') return failure(first === undefined ? '{}' : rawOf(result, first));
  const parts = members(result, first.start);
  const text = (name: string): string | undefined => {
    const part = parts.find((it) => it.name === name);
    const value = part === undefined ? undefined : valueOf(result, part);
    return textOf(value);
  };
  const source = parts.find(({ name }) => name === '_source');
  // A document without an id is shown with one that stands for none.
  const id = text('_id');
  return {
    kind: 'document',
    index: text('_index') ?? document.index,
    id: document.id === undefined && id === '_id' ? undefined : id,
    routing: text('_routing'),
    source: source === undefined ? document.source : rawOf(result, source),
  };
}

/** The status that a single write would have failed with, by the type of its error. */
const STATUS: Readonly<Partial<Record<string, number>>> = {
  es_rejected_execution_exception: 429,
  circuit_breaking_exception: 429,
  resource_not_found_exception: 404,
  status_exception: 409,
  exception: 500,
};

function failure(error: string): Outcome {
  const cause = without(JSON.parse(error) as Definitions, 'root_cause');
  return { kind: 'failed', status: STATUS[textOf(cause['type']) ?? ''] ?? 400, error: JSON.stringify(cause) };
}

/** What an error that concerns every document of a request is for each of them. */
export function failureOf(error: unknown): Outcome {
  if (!(error instanceof EngineError)) throw error;
  const cause = without(error.members, 'root_cause');
  return { kind: 'failed', status: error.status, error: JSON.stringify(cause) };
}
