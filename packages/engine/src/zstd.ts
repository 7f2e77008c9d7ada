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
 * Decompresses Zstandard frames piece by piece, off the event loop: a reader that has enough stops.
 *
 * @throws when they are malformed or cut off, or want a window over 8 MiB
 */
export async function* zstdPieces(bytes: Uint8Array): AsyncGenerator<Buffer, void> {
  const { ZstdReader } = loaded();
  const reader = new ZstdReader(asBuffer(bytes));
  try {
    for (;;) {
      const piece = await reader.next();
      if (piece === null) return;
      yield piece;
    }
  } finally {
    reader.close();
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
