import { EngineError, type Operation, type SearchEngine } from '@sparrow-search/engine';

import { Believed } from './believed.js';
import { refusal } from './errors.js';
import { type Json, isObject } from './json.js';
import type { KnownIndices } from './known-indices.js';
import { META, ownMeta } from './mappings.js';
import type { Transport } from './transport.js';
import type { Turns } from './turns.js';

/** A model by its name, and by the fingerprint of its weights, which is the same on every server. */
interface Known {
  readonly model: string;
  readonly fingerprint: string;
}

/** A field that a request searches with a text, and the id under which it names the model that reads the text. */
export interface Use {
  readonly field: string;
  readonly id: string;
}

/**
 * Which model filled which field of an index: written down in its mapping when documents went through a pipeline, and compared when a
 * text is searched for. Vectors of two models have nothing to do with each other.
 */
export class FieldModels {
  readonly #native: SearchEngine;
  readonly #transport: Transport;
  readonly #turns: Turns;
  readonly #models = new Believed<Known | undefined>();
  readonly #indices: KnownIndices;

  constructor(native: SearchEngine, transport: Transport, indices: KnownIndices, turns: Turns) {
    this.#indices = indices;
    this.#native = native;
    this.#turns = turns;
    this.#transport = transport;
  }

  /**
   * Writes down which models filled fields of an index. Documents are written whether or not it works.
   *
   * @param uses fields with the ids of models, as pipelines name them
   */
  async note(index: string, uses: readonly Use[]): Promise<void> {
    const fields: Record<string, Known> = {};
    for (const { field, id } of uses) {
      const known = await this.#model(id);
      if (known !== undefined) fields[field] = known;
    }
    if (Object.keys(fields).length === 0) return;
    const isNoted = (await this.#filledIn(index)).every((have) =>
      Object.entries(fields).every(([field, { fingerprint }]) => fingerprintOf(have[field]) === fingerprint),
    );
    if (isNoted) return;
    for (const [name] of await this.#indices.read(index)) {
      await this.#turns.alone(name, async () => {
        const [[, mappings] = []] = await this.#indices.read(name);
        const own = ownMeta(mappings);
        const meta = isObject(mappings) && isObject(mappings['_meta']) ? mappings['_meta'] : {};
        const models = { ...(isObject(own['models']) ? own['models'] : {}), ...fields };
        const body = JSON.stringify({ _meta: { ...meta, [META]: { ...own, models } } });
        const path = `/${encodeURIComponent(name)}/_mapping`;
        await this.#transport.ask({ method: 'PUT', path, body, repeatable: true });
      });
    }
    this.#indices.forget();
  }

  /** @throws {EngineError} 400 for a field that holds the output of another model than the one that is to read the text */
  async check(expression: string, uses: readonly Use[]): Promise<void> {
    if (uses.length === 0) return;
    const filled = await this.#filledIn(expression);
    for (const { field, id } of uses) {
      const stored = filled.map((have) => have[field]).filter(isObject);
      if (stored.length === 0) continue;
      const asked = await this.#model(id);
      const other = stored.find((it) => asked !== undefined && fingerprintOf(it) !== asked.fingerprint);
      if (other === undefined) continue;
      const name = String(other['model']);
      throw refusal(
        400,
        'query_shard_exception',
        `failed to create query: field [${field}] holds the output of model [${name}] and cannot be searched with model ` +
          `[${id}]: their vocabularies or weights differ`,
      );
    }
  }

  /** What is written down in the mappings of indices, one for each that has any. */
  async #filledIn(expression: string): Promise<readonly Json[]> {
    const all = await this.#indices.own(expression);
    const found = all.map(([, mapping]) => ownMeta(mapping)['models']).filter(isObject);
    return found.length === 0 ? [{}] : found;
  }

  /** The model behind an id: its own, or that of an inference endpoint. Others are not compared. */
  #model(id: string): Promise<Known | undefined> {
    return this.#models.of(id, async () => {
      const config = await this.#first('get_trained_models', { model: id }, 'trained_model_configs');
      if (config === undefined) {
        const endpoint = await this.#first('get_inference', { inference_id: id }, 'endpoints');
        const settings = endpoint?.['service_settings'];
        const behind = isObject(settings) ? settings['model_id'] : undefined;
        return typeof behind === 'string' && behind !== id ? this.#model(behind) : undefined;
      }
      const metadata = isObject(config['metadata']) ? config['metadata'] : {};
      const { fingerprint } = metadata;
      return typeof fingerprint === 'string' ? { model: String(config['model_id']), fingerprint } : undefined;
    });
  }

  async #first(op: Operation, path: Readonly<Record<string, string>>, list: string): Promise<Json | undefined> {
    try {
      const { status, body } = await this.#native.execute({ op, path, query: {} });
      const answer = JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>;
      const [first] = status === 200 && Array.isArray(answer[list]) ? (answer[list] as unknown[]) : [];
      return isObject(first) ? first : undefined;
    } catch (error) {
      if (error instanceof EngineError) return undefined;
      throw error;
    }
  }
}

function fingerprintOf(known: unknown): unknown {
  return isObject(known) ? known['fingerprint'] : undefined;
}
