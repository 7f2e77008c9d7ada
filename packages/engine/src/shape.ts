import { type Addon, findBinding, loadAddon } from './binding.js';

/** The shape that a request wants of its answer. */
export interface Shape {
  /** What to keep: comma-separated dot paths. */
  readonly filter_path?: string;
  /** Laid out for people. */
  readonly pretty?: boolean;
  /** Readable twins beside sizes and times. */
  readonly human?: boolean;
  /** The request, `METHOD /path`, that traces in an error name. */
  readonly trace?: string;
  /** YAML in place of JSON. */
  readonly yaml?: boolean;
  /** Bytes that the process may still allocate; absent for no limit. */
  readonly room?: number;
}

/**
 * Why an answer cannot have a shape: the paths of `filter_path` take more steps on it than any useful ones do, laid out it would be too
 * long, or there is no memory for it.
 */
export type ShapeProblem = 'tooMuchWork' | 'tooLong' | 'noRoom';

let addon: Addon | undefined;

/** Bytes from which on an answer is worth freeing before V8 does it. */
const LONG = 1024 * 1024;

/** Long answers that the addon has made, and nobody else has. */
const made = new WeakSet<Uint8Array>();

/** Remembers that the addon has made an answer, for {@link freeAnswer}. */
export function remember(bytes: Uint8Array): void {
  if (bytes.length >= LONG) made.add(bytes);
}

/**
 * Frees the memory of an answer that has been sent, if it is long and the addon has made it: V8 would keep it until it next collects
 * garbage, which an idle server does not do for a long time. Nothing may read it any more.
 */
export function freeAnswer(bytes: Uint8Array): void {
  if (!made.delete(bytes) || bytes.length !== bytes.buffer.byteLength) return;
  addon ??= loadAddon(findBinding());
  addon.freeAnswer(bytes.buffer as ArrayBuffer);
}

/**
 * Gives an answer in JSON another shape, off the event loop. `bytes` must not be changed until the promise settles. Rejects when the
 * bytes are not JSON.
 */
export async function shapeAnswer(bytes: Uint8Array, shape: Shape): Promise<Uint8Array | ShapeProblem> {
  addon ??= loadAddon(findBinding());
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const shown = await addon.shapeAnswer(view, JSON.stringify(shape));
  if (typeof shown !== 'string') remember(shown);
  return shown;
}
