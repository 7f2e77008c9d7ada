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

/**
 * Gives an answer in JSON another shape, off the event loop. `bytes` must not be changed until the promise settles. Rejects when the
 * bytes are not JSON.
 */
export function shapeAnswer(bytes: Uint8Array, shape: Shape): Promise<Uint8Array | ShapeProblem> {
  addon ??= loadAddon(findBinding());
  return addon.shapeAnswer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), JSON.stringify(shape));
}
