// The forms that vectors come in, and what a field cannot hold: as the native engine has them (crates/mapping/src/encoded.rs and
// crates/mapping/src/dense/problems.rs), which the addon does not export.
import type { DenseField, Element } from './dense-fields.js';

/** A vector, or the reason why a text is not one. */
export type Decoded = { readonly vector: readonly number[] } | { readonly problem: string };

/** Largest allowed deviation of a unit vector's squared length from 1. */
const UNIT_TOLERANCE = 1e-3;

/**
 * The vector of a query that is a text: two hexadecimal digits for each number from -128 to 127, or else Base64 of 32-bit big-endian
 * floats.
 */
export function queryVector(text: string): Decoded {
  const digits = hexadecimal(text);
  if ('vector' in digits) return digits;
  const decoded = floats(text);
  return 'vector' in decoded ? decoded : digits;
}

/**
 * The vector of a document that is a text: Base64 of 32-bit big-endian floats, or for bytes and bits two hexadecimal digits for each
 * byte, or Base64 of the bytes.
 */
export function documentVector(text: string, { element, dims }: DenseField): Decoded {
  if (element === 'float') return floats(text);
  const digits = hexadecimal(text);
  if ('vector' in digits) return digits;
  const bytes = base64(text);
  const wanted = element === 'bit' ? (dims ?? 0) / 8 : dims;
  return bytes !== undefined && (dims === undefined || bytes.length === wanted)
    ? { vector: [...new Int8Array(bytes)] }
    : digits;
}

/** How many dimensions a vector of so many numbers has. */
export function dimsOf(element: Element, numbers: number): number {
  return element === 'bit' ? 8 * numbers : numbers;
}

/** Why a field can have nothing to do with a vector, but for its number of dimensions; undefined if it can. */
export function vectorProblem(
  { element, similarity, index }: DenseField,
  vector: readonly number[],
): string | undefined {
  const at = vector.findIndex((number) => !holds(element, number));
  if (at >= 0) return `${componentProblem(element, vector[at] ?? 0, at)} ${preview(element, vector)}`;
  if (!index || (similarity !== 'cosine' && similarity !== 'dot_product')) return undefined;
  const squared = vector.reduce((sum, number) => sum + number * number, 0);
  if (similarity === 'cosine' && squared === 0)
    return `The [cosine] similarity does not support vectors with zero magnitude. ${preview(element, vector)}`;
  if (similarity === 'dot_product' && element === 'float' && Math.abs(squared - 1) > UNIT_TOLERANCE)
    return `The [dot_product] similarity can only be used with unit-length vectors. ${preview(element, vector)}`;
  return undefined;
}

function holds(element: Element, number: number): boolean {
  if (element === 'float') return Number.isFinite(Math.fround(number));
  return Number.isInteger(number) && number >= -128 && number <= 127;
}

function componentProblem(element: Element, number: number, at: number): string {
  const where = `at dim [${String(at)}];`;
  const vectors = `element_type [${element}] vectors`;
  if (!Number.isFinite(Math.fround(number)))
    return `${vectors} do not support NaN or infinite values but found [${String(number)}] ${where}`;
  return Number.isInteger(number)
    ? `${vectors} only support integers between [-128, 127] but found [${String(number)}] ${where}`
    : `${vectors} only support non-decimal values but found decimal value [${String(number)}] ${where}`;
}

function preview(element: Element, vector: readonly number[]): string {
  const shown = vector
    .slice(0, 5)
    .map((it) => (element === 'float' && Number.isInteger(it) ? it.toFixed(1) : String(it)));
  return `Preview of invalid vector: [${[...shown, ...(vector.length > 5 ? ['...'] : [])].join(', ')}]`;
}

function floats(text: string): Decoded {
  const wanted = 'a vector as a string must be Base64 of 32-bit big-endian floats';
  const bytes = base64(text);
  if (bytes === undefined) return { problem: `${wanted}: it is no Base64` };
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    return { problem: `${wanted}, found [${String(bytes.length)}] bytes` };
  return { vector: Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatBE(4 * at)) };
}

/** The bytes of a text in Base64, with or without padding; Node.js skips all other characters. */
function base64(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/u.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64').replace(/=+$/u, '') === text.replace(/=+$/u, '') ? bytes : undefined;
}

function hexadecimal(text: string): Decoded {
  if (text.length % 2 !== 0) return { problem: `found uneven number of hexadecimal digits: [${text}]` };
  if (!/^[0-9a-f]*$/iu.test(text)) return { problem: `found a character that is not a hexadecimal digit: [${text}]` };
  return { vector: [...new Int8Array(Buffer.from(text, 'hex'))] };
}
