import { Believed } from './believed.js';
import { isObject, textOf, valueAt } from './json.js';
import { META } from './mappings.js';
import { encodeExpression } from './names.js';
import { passedOn } from './replies.js';
import type { Asked, Transport } from './transport.js';

/** Indices with their mappings as the cluster has them. */
export type Mappings = readonly (readonly [index: string, mapping: unknown])[];

/** The index that a name writes to. */
export interface Written {
  /** Undefined for an alias of several indices that takes no writes. */
  readonly index: string | undefined;
  /** Whether it is yet to be made, by a template. */
  readonly isMissing: boolean;
  /** As the cluster has it, or as a template brings it. */
  readonly mapping: unknown;
}

/** The filter of answers about mappings that leaves what is Sparrow's of them, as others may be long. */
export const ONLY_OWN = { filter_path: `*.mappings._meta.${META}` };

export const IF_THERE = { ignore_unavailable: 'true' };

/**
 * Mappings of the indices that names stand for, which are believed for five seconds. If the cluster is overloaded or blocked, its answer is
 * thrown as an error: it does not mean that an index has no mapping.
 */
export class KnownIndices {
  readonly #transport: Transport;
  readonly #own = new Believed<Mappings>();
  readonly #whole = new Believed<Mappings>();
  readonly #written = new Believed<Written>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The part of mappings in which Sparrow keeps its own notes (`_meta.sparrow`), of the indices of an expression that have one. */
  own(expression: string): Promise<Mappings> {
    return this.#own.of(expression, () => this.read(expression, { ...IF_THERE, ...ONLY_OWN }));
  }

  /** The mappings of the indices that an expression stands for. */
  whole(expression: string): Promise<Mappings> {
    return this.#whole.of(expression, () => this.read(expression, IF_THERE));
  }

  /** Asks the cluster for the mappings of the indices of an expression; an empty list if a named one is missing, unless `query` permits that. */
  async read(expression: string, query: Readonly<Record<string, string>> = {}): Promise<Mappings> {
    const path = `/${encodeExpression(expression)}/_mapping`;
    return mappingsIn(await readThere(this.#transport, { method: 'GET', path, query }));
  }

  /** The index that a name writes to: one that is there, or one that a template makes. */
  async written(name: string): Promise<Written> {
    const found = await this.#written.of(name, () => this.writtenNow(name));
    // Anybody may make the index, or another template for it, at any moment.
    if (found.isMissing) this.#written.drop(name);
    return found;
  }

  /** The same, whatever is believed. */
  async writtenNow(name: string): Promise<Written> {
    const answered = await this.#transport.json({ method: 'GET', path: `/${encodeExpression(name)}/_mapping` });
    const there = thereIn(answered);
    if (there === undefined) {
      const { index, template } = await templateOf(this.#transport, name, answered.body);
      return { index, isMissing: true, mapping: template['mappings'] };
    }
    const all = mappingsIn(there);
    const names = all.map(([index]) => index);
    const index = names.length > 1 ? await writeIndexOf(this.#transport, name, names) : names[0];
    return { index, isMissing: false, mapping: all.find(([it]) => it === index)?.[1] };
  }

  /** Asks again next time, as names may stand for others, or mappings are not what they were. */
  forget(): void {
    for (const believed of [this.#own, this.#whole, this.#written]) believed.forget();
  }
}

function mappingsIn(answer: unknown): Mappings {
  return Object.entries(isObject(answer) ? answer : {}).map(([index, it]) => [
    index,
    isObject(it) ? it['mappings'] : undefined,
  ]);
}

/**
 * What the cluster has of something; undefined where it is not there, or where nothing can have its name, so that the cluster refuses
 * whatever is done with it.
 *
 * @throws {EngineError} the cluster's own answer where it says neither
 */
export function thereIn({ status, body }: { readonly status: number; readonly body: unknown }): unknown {
  if (status === 404 || (status === 400 && !isLineTooLong(body))) return undefined;
  if (status !== 200) throw passedOn({ status, body: Buffer.from(JSON.stringify(body ?? {})) });
  return body;
}

/** Whether a request was refused for the length of its line, which says nothing of the names in it. */
function isLineTooLong(body: unknown): boolean {
  return valueAt(body, ['error', 'type']) === 'too_long_http_line_exception';
}

async function readThere(transport: Transport, asked: Asked): Promise<unknown> {
  return thereIn(await transport.json(asked));
}

/**
 * What templates give to an index that is not there.
 *
 * @param missing what the cluster said of it: only that tells which index date math stands for
 */
export async function templateOf(
  transport: Transport,
  name: string,
  missing: unknown,
): Promise<{ readonly index: string; readonly template: Readonly<Record<string, unknown>> }> {
  const meant = name.startsWith('<') ? textOf(valueAt(missing, ['error', 'index'])) : undefined;
  const index = meant ?? name;
  const path = `/_index_template/_simulate_index/${encodeExpression(index)}`;
  const simulated = await readThere(transport, { method: 'POST', path });
  const template = isObject(simulated) ? simulated['template'] : undefined;
  return { index, template: isObject(template) ? template : {} };
}

/**
 * The index that writes to an alias or a data stream go to; undefined where an alias of several indices takes none.
 *
 * @param indices all that the name stands for
 * @throws {EngineError} the cluster's own answer where it does not say
 */
export async function writeIndexOf(
  transport: Transport,
  name: string,
  indices: readonly string[],
): Promise<string | undefined> {
  const aliases = await readThere(transport, { method: 'GET', path: `/_alias/${encodeURIComponent(name)}` });
  const found = isObject(aliases) ? Object.entries(aliases) : [];
  const [only, second] = found;
  const target = second === undefined ? (only?.[0] ?? name) : found.find(([, it]) => isWritten(it, name))?.[0];
  if (target === undefined || indices.includes(target)) return target;
  const path = `/_data_stream/${encodeURIComponent(target)}`;
  const streams = await readThere(transport, { method: 'GET', path });
  const list = isObject(streams) ? streams['data_streams'] : undefined;
  const [stream] = Array.isArray(list)
    ? (list as { readonly indices: readonly { readonly index_name: string }[] }[])
    : [];
  return stream?.indices.at(-1)?.index_name;
}

function isWritten(of: unknown, alias: string): boolean {
  const aliases = isObject(of) ? of['aliases'] : undefined;
  const one = isObject(aliases) && Object.hasOwn(aliases, alias) ? aliases[alias] : undefined;
  return isObject(one) && one['is_write_index'] === true;
}
