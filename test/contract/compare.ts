/** Values that differ from run to run: only their kind is compared. Made-up names are put in place of each other before. */
const VOLATILE = new Set([
  ...['took', 'ingest_took', 'creation_date', 'start_time_in_millis', 'running_time_in_nanos', 'cluster_name', 'task'],
  // Columns of _cat that count bytes, or depend on when segments were merged.
  ...['docs.deleted', 'store.size', 'pri.store.size', 'dataset.size'],
]);

/** What may differ between a recorded body and ours. */
export interface Tolerance {
  /** Relative difference that a score may have. */
  readonly score: number;
  /** Further keys of which only the kind is compared. */
  readonly kindOnly?: readonly string[];
  /** Only the kind of any number or text is compared. */
  readonly figures?: boolean;
  /** Keys whose content is not compared at all. */
  readonly anything?: ReadonlySet<string>;
}

/** Differences between a recorded body and ours, as `path: recorded … ours …`; a key only one of them has is one. */
export function differences(recorded: unknown, ours: unknown, tolerance: Tolerance, path = ''): string[] {
  if (Array.isArray(recorded) && Array.isArray(ours)) {
    if (recorded.length !== ours.length)
      return [`${path}: ${String(recorded.length)} items, ours ${String(ours.length)}`];
    return recorded.flatMap((item, index) => differences(item, ours[index], tolerance, `${path}[${String(index)}]`));
  }
  if (isObject(recorded) && isObject(ours)) {
    return [...new Set([...Object.keys(recorded), ...Object.keys(ours)])].flatMap((key) => {
      const at = path === '' ? key : `${path}.${key}`;
      if (tolerance.anything?.has(key) === true && typeof (recorded[key] ?? ours[key]) === 'object') return [];
      if (!(key in recorded)) return [`${at}: not recorded, ours ${JSON.stringify(ours[key])}`];
      if (!(key in ours)) return [`${at}: recorded ${JSON.stringify(recorded[key])}, missing in ours`];
      const kindOnly =
        (tolerance.figures === true || VOLATILE.has(key) || tolerance.kindOnly?.includes(key)) &&
        typeof recorded[key] !== 'object';
      if (kindOnly) return sameKind(recorded[key], ours[key], at);
      return differences(recorded[key], ours[key], tolerance, at);
    });
  }
  if (
    typeof recorded === 'number' &&
    typeof ours === 'number' &&
    /\b(_score|max_score|_explanation\b.*value)$/.test(path)
  ) {
    const allowed = tolerance.score * Math.abs(recorded);
    return Math.abs(recorded - ours) <= allowed ? [] : [shown(path, recorded, ours)];
  }
  if (typeof recorded === 'string' && typeof ours === 'string' && path.endsWith('.description')) {
    return withoutPlace(recorded) === withoutPlace(ours) ? [] : [shown(path, recorded, ours)];
  }
  // Sparrow also says which names are spelled alike.
  const plain = typeof ours === 'string' && path.endsWith('reason') ? ours.replace(/ did you mean [^?]*\?$/, '') : ours;
  return recorded === ours || recorded === plain ? [] : [shown(path, recorded, ours)];
}

/** An explanation names the place of a document in its segment, which depends on when segments were merged. */
function withoutPlace(description: string): string {
  return description.replace(/ in \d+\) /, ' in N) ');
}

function sameKind(recorded: unknown, ours: unknown, path: string): string[] {
  return typeof recorded === typeof ours && ours !== null ? [] : [shown(path, recorded, ours)];
}

function shown(path: string, recorded: unknown, ours: unknown): string {
  return `${path}: recorded ${JSON.stringify(recorded)}, ours ${JSON.stringify(ours)}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
