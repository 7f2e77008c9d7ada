import { refusal } from './errors.js';
import { isObject } from './json.js';
import { RESERVED } from './names.js';
import { passedOn } from './replies.js';
import type { Transport } from './transport.js';

/** Where Sparrow's nodes keep what they have in common. */
export const STATE_INDEX = `${RESERVED}state`;
/** Where they keep API keys: apart, since a snapshot has them only if it is told to. */
export const KEYS_INDEX = `${RESERVED}keys`;

/** Which writing of a document something is. */
export interface Version {
  readonly seqNo: number;
  readonly term: number;
}

/** A text that Sparrow's nodes share, and which writing of it this is. */
export interface Shared {
  readonly text: string;
  readonly version: Version;
}

/** How often a change is made again when another node made one at the same moment. */
export const TRIES = 10;

/** Another node wrote in between. */
export class Conflict extends Error {
  override readonly name = 'Conflict';
}

/**
 * Makes a hidden index of Sparrow's own, or completes one that was left half-made.
 *
 * @param properties its fields; nothing else of its documents is searchable
 */
export async function ensureIndex(transport: Transport, index: string, properties: object): Promise<void> {
  const mappings = { dynamic: false, properties };
  const settings = { index: { hidden: true, number_of_shards: 1, auto_expand_replicas: '0-1' } };
  const body = JSON.stringify({ settings, mappings });
  const created = await transport.ask({ method: 'PUT', path: `/${index}`, body, repeatable: true });
  if (created.status === 200) return;
  if (!created.body.includes('resource_already_exists_exception')) throw passedOn(created);
  const put = await transport.ask({
    method: 'PUT',
    path: `/${index}/_mapping`,
    body: JSON.stringify(mappings),
    repeatable: true,
  });
  if (put.status !== 200) throw passedOn(put);
}

/** Texts in a hidden index of the cluster, changed only by who has seen what they were. */
export class SharedState {
  readonly #transport: Transport;

  private constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** @throws {EngineError} when the index can be neither made nor read */
  static async open(transport: Transport): Promise<SharedState> {
    for (const index of [STATE_INDEX, KEYS_INDEX]) await ensureIndex(transport, index, {});
    const state = new SharedState(transport);
    // An index is there before its shard is, as after a restart of the cluster.
    await state.version('any');
    return state;
  }

  async read(id: string): Promise<Shared | undefined> {
    return textIn(id, await this.#transport.json({ method: 'GET', path: pathOf(id) }));
  }

  /** Which writing of a text is the latest, without the text. */
  async version(id: string): Promise<Version | undefined> {
    const { status, body } = await this.#transport.json({
      method: 'GET',
      path: pathOf(id),
      query: { _source: 'false' },
    });
    if (status === 404) return undefined;
    if (status !== 200) throw unreadable(id, status);
    return versionOf(body);
  }

  /**
   * Writes a text in place of the one that was read.
   *
   * @param before the writing that was read; undefined if there was none
   * @throws {Conflict} when another node wrote in between
   */
  async write(id: string, text: string, before: Version | undefined): Promise<Version> {
    const { status, body } = await this.#transport.json({
      method: 'PUT',
      path: pathOf(id),
      query:
        before === undefined
          ? { op_type: 'create' }
          : { if_seq_no: String(before.seqNo), if_primary_term: String(before.term) },
      body: JSON.stringify({ text }),
    });
    if (status === 409) throw new Conflict(`[${id}] was written by another node`);
    if (status !== 200 && status !== 201) throw unreadable(id, status);
    return versionOf(body);
  }

  /**
   * Reads a text, and writes what it becomes in its place; anew where another node wrote in between.
   *
   * @param change gives the new text; it gets the present one, or undefined if nothing was written yet
   * @throws {Conflict} when another node wrote in between each time
   */
  async change(id: string, change: (before: string | undefined) => string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const before = await this.read(id);
      try {
        await this.write(id, change(before?.text), before?.version);
        return;
      } catch (error) {
        if (!(error instanceof Conflict) || attempt >= TRIES) throw error;
      }
    }
  }
}

/** A shared text in the cluster's answer to a request for its document; undefined if it is not there. */
export function textIn(
  id: string,
  { status, body }: { readonly status: number; readonly body: unknown },
): Shared | undefined {
  if (status === 404) return undefined;
  const source = isObject(body) && isObject(body['_source']) ? body['_source'] : {};
  if (status !== 200 || typeof source['text'] !== 'string') throw unreadable(id, status);
  return { text: source['text'], version: versionOf(body) };
}

function indexOf(id: string): string {
  return id === 'api_keys' ? KEYS_INDEX : STATE_INDEX;
}

function pathOf(id: string): string {
  return `/${indexOf(id)}/_doc/${id}`;
}

export function sameVersion(a: Version | undefined, b: Version | undefined): boolean {
  return a?.seqNo === b?.seqNo && a?.term === b?.term;
}

function versionOf(body: unknown): Version {
  const { _seq_no: seqNo, _primary_term: term } = body as { _seq_no: number; _primary_term: number };
  return { seqNo, term };
}

function unreadable(id: string, status: number): Error {
  return refusal(
    503,
    'cluster_state_exception',
    `[${id}] of Sparrow's index [${indexOf(id)}] cannot be read or written: the cluster answered with status ${String(status)}`,
  );
}
