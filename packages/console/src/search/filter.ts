// What is to be said about a filter: fields that there are not, and texts that are compared as if they were numbers.
import {
  comparesLetters,
  fieldsOfFilter,
  textsCompared,
  unknownAmong,
  withParents,
} from '../../../engine/src/diagnostics/named-fields';
import { optional } from '../lib/api';

/** The fields that a filter names and the index does not have, where the server finds nothing and says nothing; and other notes. */
export async function notesOfFilter(
  index: string,
  filter: string,
): Promise<{ readonly unknown: readonly string[]; readonly notes: readonly string[] }> {
  const names = fieldsOfFilter(filter);
  if (names.length === 0) return { unknown: [], notes: [] };
  const path = `/${encodeURIComponent(index)}/_field_caps?fields=${encodeURIComponent(withParents(names).join(','))}`;
  const { fields } = await optional<{ readonly fields?: object }>({}, 'GET', path);
  if (fields === undefined) return { unknown: [], notes: [] };
  return { unknown: unknownAmong(names, fields), notes: textsCompared(filter, fields).map(comparesLetters) };
}
