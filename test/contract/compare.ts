/** Values that differ from run to run: only their kind is compared. */
const VOLATILE = new Set([
  ...['took', 'ingest_took', 'uuid', 'index_uuid', 'creation_date', 'created', '_scroll_id', 'build_hash', 'build_date'],
  ...['build_snapshot', 'lucene_version', 'node', 'task', 'start_time_in_millis', 'running_time_in_nanos', 'stack_trace'],
  ...['shard', 'cluster_uuid', 'provided_name_suffix'],
]);

/** Settings and counters of a cluster, which one process does not have. */
const IGNORED = new Set(['routing', 'stack_trace']);

export interface Tolerance {
  /** Relative difference that a score may have. */
  readonly score: number;
}

/** Differences between a recorded body and ours, as `path: recorded … ours …`. */
export function differences(recorded: unknown, ours: unknown, tolerance: Tolerance, path = ''): string[] {
  if (Array.isArray(recorded) && Array.isArray(ours)) {
    if (recorded.length !== ours.length) return [`${path}: ${String(recorded.length)} items, ours ${String(ours.length)}`];
    return recorded.flatMap((item, index) => differences(item, ours[index], tolerance, `${path}[${String(index)}]`));
  }
  if (isObject(recorded) && isObject(ours)) {
    const keys = [...new Set([...Object.keys(recorded), ...Object.keys(ours)])].filter((key) => !IGNORED.has(key));
    return keys.flatMap((key) => {
      const at = path === '' ? key : `${path}.${key}`;
      if (!(key in recorded)) return [`${at}: not recorded, ours ${JSON.stringify(ours[key])}`];
      if (!(key in ours)) return [`${at}: recorded ${JSON.stringify(recorded[key])}, missing in ours`];
      if (VOLATILE.has(key)) return sameKind(recorded[key], ours[key], at);
      return differences(recorded[key], ours[key], tolerance, at);
    });
  }
  if (typeof recorded === 'number' && typeof ours === 'number' && /score|value$/.test(path)) {
    const allowed = tolerance.score * Math.max(Math.abs(recorded), Math.abs(ours));
    return Math.abs(recorded - ours) <= allowed ? [] : [shown(path, recorded, ours)];
  }
  return recorded === ours ? [] : [shown(path, recorded, ours)];
}

function sameKind(recorded: unknown, ours: unknown, path: string): string[] {
  return typeof recorded === typeof ours && (recorded === null) === (ours === null) ? [] : [shown(path, recorded, ours)];
}

function shown(path: string, recorded: unknown, ours: unknown): string {
  return `${path}: recorded ${JSON.stringify(recorded)}, ours ${JSON.stringify(ours)}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
