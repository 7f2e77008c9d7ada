import { findBinding, loadAddon } from './binding.js';

/**
 * Why a body of lines is refused whose last one does not end, in the words of the engine's own refusal: also that it has no line break at
 * all, and what takes them away.
 *
 * @param request what the body is of
 * @param body UTF-8
 */
export function unterminated(request: 'bulk' | 'msearch', body: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = body;
  return loadAddon(findBinding()).unterminated(request, Buffer.from(buffer, byteOffset, byteLength));
}
