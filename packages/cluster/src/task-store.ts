import { refusal } from './errors.js';
import { isObject } from './json.js';
import { RESERVED } from './names.js';
import { Conflict, type Version, ensureIndex } from './shared-state.js';
import type { TaskRecord } from './task-record.js';
import type { Transport } from './transport.js';

const INDEX = `${RESERVED}tasks`;

/** How long a task is its node's without a word of it. Nodes whose clocks differ by more take each other's tasks. */
export const LEASE_MS = 15_000;

/** A task as it was read, with which writing that was. */
export interface Kept {
  readonly record: TaskRecord;
  readonly version: Version;
  /** The node that works on it. */
  readonly owner: string;
}

/** Tasks in a hidden index of the cluster: any of Sparrow's nodes shows each, and goes on with those whose node is gone. */
export class TaskStore {
  readonly #transport: Transport;

  private constructor(transport: Transport) {
    this.#transport = transport;
  }

  static async open(transport: Transport): Promise<TaskStore> {
    await ensureIndex(transport, INDEX, {
      completed: { type: 'boolean' },
      lease_until: { type: 'long' },
      start: { type: 'long' },
    });
    return new TaskStore(transport);
  }

  /** @throws {Conflict} when another node has a task of that number */
  async create(record: TaskRecord, owner: string): Promise<Version> {
    return this.#write(record, owner, { op_type: 'create' });
  }

  /**
   * @param lease milliseconds for which the task stays its owner's
   * @throws {Conflict} when another node wrote since `version`
   */
  async save(record: TaskRecord, owner: string, { seqNo, term }: Version, lease = LEASE_MS): Promise<Version> {
    return this.#write(record, owner, { if_seq_no: String(seqNo), if_primary_term: String(term) }, lease);
  }

  async read(number: number): Promise<Kept | undefined> {
    const { status, body } = await this.#transport.json({ method: 'GET', path: `/${INDEX}/_doc/${String(number)}` });
    if (status === 404) return undefined;
    if (status !== 200) throw unusable(status);
    return kept(body);
  }

  /** Tasks that are not complete; with `before`, only those whose lease ended before that time. */
  async open(before?: number): Promise<readonly Kept[]> {
    const filter = [
      { term: { completed: false } },
      ...(before === undefined ? [] : [{ range: { lease_until: { lt: before } } }]),
    ];
    const { status, body } = await this.#transport.json({
      method: 'POST',
      path: `/${INDEX}/_search`,
      body: JSON.stringify({
        size: 1000,
        seq_no_primary_term: true,
        query: { bool: { filter } },
        sort: [{ start: 'asc' }],
      }),
      repeatable: true,
    });
    if (status !== 200) throw unusable(status);
    const found = isObject(body) && isObject(body['hits']) ? body['hits']['hits'] : [];
    return Array.isArray(found) ? found.map(kept) : [];
  }

  async #write(
    record: TaskRecord,
    owner: string,
    query: Readonly<Record<string, string>>,
    lease = LEASE_MS,
  ): Promise<Version> {
    const { status, body } = await this.#transport.json({
      method: 'PUT',
      path: `/${INDEX}/_doc/${String(record.number)}`,
      // What lists of tasks show is to be there at once.
      query: { ...query, refresh: record.end === undefined && query['op_type'] === undefined ? 'false' : 'true' },
      body: JSON.stringify({
        completed: record.end !== undefined,
        lease_until: Date.now() + lease,
        start: record.start,
        owner,
        record: JSON.stringify(record),
      }),
    });
    if (status === 409) throw new Conflict(`task ${String(record.number)} was written by another node`);
    if (status !== 200 && status !== 201) throw unusable(status);
    return versionOf(body);
  }
}

function kept(document: unknown): Kept {
  const source = (document as { _source: { record: string; owner: string } })._source;
  return { record: JSON.parse(source.record) as TaskRecord, owner: source.owner, version: versionOf(document) };
}

function versionOf(body: unknown): Version {
  const { _seq_no: seqNo, _primary_term: term } = body as { _seq_no: number; _primary_term: number };
  return { seqNo, term };
}

function unusable(status: number): Error {
  return refusal(
    503,
    'cluster_state_exception',
    `Sparrow's index [${INDEX}] cannot be read or written: the cluster answered with status ${String(status)}`,
  );
}
