import type { Json } from './json-text.js';

const SIZES = ['b', 'kb', 'mb', 'gb', 'tb', 'pb'];
const TIMES = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** Milliseconds that are a moment, not a length of time. */
const MOMENTS = /^(?:start_time|creation|timestamp|.*_date)$/;

/**
 * Statistics with a readable twin before each count of bytes and milliseconds (`size` before `size_in_bytes`), for `?human`.
 * Only for answers of statistics: a document may have fields of such names.
 */
export function readable(json: Json): Json {
  if (json.kind === 'array') return { kind: 'array', items: json.items.map(readable) };
  if (json.kind === 'scalar') return json;
  const present = new Set(json.entries.map(([key]) => key));
  const entries = json.entries.flatMap(([key, value]) => {
    const twin = value.kind === 'scalar' ? twinOf(key.slice(1, -1), value.text) : undefined;
    const own = [key, readable(value)] as const;
    if (twin === undefined || present.has(twin[0])) return [own];
    return [[twin[0], { kind: 'scalar', text: JSON.stringify(twin[1]) }] as const, own];
  });
  return { kind: 'object', entries };
}

/** Name, in quotes, and value of the twin. */
function twinOf(name: string, text: string): readonly [string, string] | undefined {
  if (name === 'creation_date') return ['"creation_date_string"', moment(Number(text.replaceAll('"', '')))];
  const [, stem = '', unit = ''] = /^(.+)_in_(bytes|millis|nanos|micros)$/.exec(name) ?? [];
  const number = Number(text);
  if (stem === '' || text.startsWith('"') || !Number.isFinite(number)) return undefined;
  const key = JSON.stringify(stem);
  if (unit === 'bytes') return [key, size(number)];
  if (unit === 'millis' && MOMENTS.test(stem)) return [key, moment(number)];
  return [key, unit === 'millis' ? time(number) : shortTime(number, unit)];
}

function size(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < SIZES.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${decimal(amount)}${SIZES[unit] ?? ''}`;
}

function time(milliseconds: number): string {
  const [unit, length] = TIMES.find(([, size]) => Math.abs(milliseconds) >= size) ?? ['ms', 1];
  return `${decimal(milliseconds / length)}${unit}`;
}

function shortTime(number: number, unit: string): string {
  const micros = unit === 'micros' ? number : number / 1000;
  if (Math.abs(micros) >= 1000) return time(micros / 1000);
  return unit === 'nanos' && Math.abs(number) < 1000 ? `${String(number)}nanos` : `${decimal(micros)}micros`;
}

/** One digit behind the point, which is cut and not rounded, and none if it is zero. */
function decimal(number: number): string {
  return String(Math.trunc(number * 10) / 10);
}

function moment(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
