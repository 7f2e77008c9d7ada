/** How far a copy has come in one shard: the documents up to a sequence number are written. */
export interface ShardProgress {
  readonly index: string;
  readonly shard: number;
  /** What else has to hold for a document: the filter of the alias by which the index was named. */
  readonly filter?: unknown;
  readonly after?: number;
  /** The last sequence number when documents began to be written in place: what has a later one has been written since. */
  readonly until?: number;
  readonly done?: boolean;
}

/** What a copy has done. */
export interface Tally {
  total: number;
  created: number;
  updated: number;
  deleted: number;
  batches: number;
  version_conflicts: number;
  noops: number;
  bulk_retries: number;
  throttled_millis: number;
}

/** A failure of a document. */
export interface Failure {
  readonly index: string;
  readonly id: string | null;
  readonly cause: unknown;
  readonly status: number;
}

/** A task as the cluster keeps it for Sparrow's nodes. */
export interface TaskRecord {
  readonly format: 1;
  readonly number: number;
  readonly action: string;
  readonly description: string;
  readonly start: number;
  readonly opaqueId?: string | undefined;
  /** The body of the request. */
  readonly request: string;
  /** Rights of a restricted key, under which each document is written. */
  readonly rights?: string | undefined;
  readonly query: Readonly<Record<string, string>>;
  readonly shards: readonly ShardProgress[];
  readonly tally: Tally;
  readonly failures: readonly Failure[];
  readonly cancelled?: string | undefined;
  readonly error?: unknown;
  readonly end?: number | undefined;
  /** What became of the change of a model. */
  readonly outcome?: ChangeOutcome | undefined;
}

/** What became of the change of a model. */
export interface ChangeOutcome {
  readonly field: string;
  readonly state: string;
  readonly compared?: unknown;
}

export function newTally(): Tally {
  return {
    total: 0,
    created: 0,
    updated: 0,
    deleted: 0,
    batches: 0,
    version_conflicts: 0,
    noops: 0,
    bulk_retries: 0,
    throttled_millis: 0,
  };
}

/** The action of the change of a model, whose statistics are others. */
export const CHANGE = 'indices:admin/ext/model/change';

/** The action of an upgrade, whose statistics are fewer. */
export const UPGRADE = 'cluster:admin/xpack/upgrade';

/** The name of the node in the ids of tasks: they are those of all nodes of a cluster. */
export const TASK_NODE = 'sparrow';

/** A task as `_tasks` shows it. */
export function view(record: TaskRecord): object {
  const { tally, number, action, description, start, end, opaqueId, cancelled, error } = record;
  const { bulk_retries: bulk, throttled_millis: throttled, ...counts } = tally;
  const status =
    action === CHANGE
      ? filling(record)
      : {
          ...counts,
          retries: { bulk, search: 0 },
          throttled_millis: throttled,
          requests_per_second: -1.0,
          throttled_until_millis: 0,
          ...(cancelled === undefined ? {} : { canceled: cancelled }),
        };
  const task = {
    node: TASK_NODE,
    id: number,
    type: 'transport',
    action,
    status,
    description,
    start_time_in_millis: start,
    running_time_in_nanos: ((end ?? Date.now()) - start) * 1_000_000 || 1,
    cancellable: true,
    cancelled: cancelled !== undefined,
    headers: opaqueId === undefined ? {} : { 'X-Opaque-Id': opaqueId },
  };
  if (end === undefined) return { completed: false, task };
  return { completed: true, task, ...(error === undefined ? { response: response(record) } : { error }) };
}

/** How far the task of a change of a model is, in the native engine's order. */
function filling({ tally, query, cancelled }: TaskRecord): object {
  const pace = Number(query['requests_per_second'] ?? -1);
  return {
    total: tally.total,
    filled: tally.updated,
    version_conflicts: tally.version_conflicts,
    throttled_millis: tally.throttled_millis,
    requests_per_second: pace === Infinity ? -1 : pace,
    ...(cancelled === undefined ? {} : { canceled: cancelled }),
  };
}

/** What a request that waited for the task is answered. */
export function response(record: TaskRecord): object {
  const { action, tally, failures, start, end, cancelled, outcome } = record;
  const { bulk_retries: bulk, throttled_millis: throttled, ...counts } = tally;
  if (action === CHANGE) {
    const { field, state, compared } = outcome ?? {};
    return { took: (end ?? Date.now()) - start, field, state, ...filling(record), compared };
  }
  if (action === UPGRADE) {
    const took = (end ?? Date.now()) - start;
    return { took, timed_out: false, ...counts, retries: { bulk, search: 0 }, throttled_millis: throttled, failures };
  }
  return {
    took: (end ?? Date.now()) - start,
    timed_out: false,
    ...counts,
    retries: { bulk, search: 0 },
    throttled_millis: throttled,
    requests_per_second: -1.0,
    throttled_until_millis: 0,
    ...(cancelled === undefined ? {} : { canceled: cancelled }),
    failures,
  };
}
