import { type Addon, findBinding, loadAddon } from './binding.js';

let addon: Addon | undefined;

function loaded(): Addon {
  addon ??= loadAddon(findBinding());
  return addon;
}

/** Compresses bytes into one Zstandard frame, off the event loop. */
export function zstdCompress(bytes: Uint8Array, level: number): Promise<Uint8Array> {
  return loaded().zstdCompress(asBuffer(bytes), level);
}

/**
 * Decompresses Zstandard frames, off the event loop. Resolves with null when there are more than `limit` bytes in them;
 * rejects when they are malformed.
 */
export function zstdDecompress(bytes: Uint8Array, limit: number): Promise<Uint8Array | null> {
  return loaded().zstdDecompress(asBuffer(bytes), limit);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
