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
  /** Most bytes of what is laid out. */
  readonly most?: number;
}

let addon: Addon | undefined;

/**
 * Gives an answer in JSON another shape, off the event loop. `bytes` must not be changed until the promise settles.
 *
 * Resolves with null when the paths of `filter_path` take more steps on this answer than any useful ones do, or laid out it would
 * be too long; rejects when the bytes are not JSON.
 */
export function shapeAnswer(bytes: Uint8Array, shape: Shape): Promise<Uint8Array | null> {
  addon ??= loadAddon(findBinding());
  return addon.shapeAnswer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), JSON.stringify(shape));
}
