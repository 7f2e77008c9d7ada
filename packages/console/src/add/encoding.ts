// The letters of a file: UTF-8, or Latin-1 as older spreadsheets write it. What is read as U+FFFD is lost, so nothing is.
import { hasControls } from '../../../cli/src/documents/no-text';

export interface Decoded {
  readonly text: string;
  readonly isLatin1: boolean;
}

const NO_TEXT =
  'This is not a text. Save a spreadsheet as CSV in UTF-8, or a PDF or other document as plain text, and drop that.';

/** @throws Error, in words for people, for what is no text, or a text in UTF-8 that has other bytes in it */
export function decoded(bytes: Uint8Array): Decoded {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), isLatin1: false };
  } catch {
    // Told below.
  }
  if (hasControls(bytes)) throw new Error(NO_TEXT);
  const lines = new TextDecoder().decode(bytes).split('\n');
  const foreign = lines.findIndex((line) => line.includes('\uFFFD'));
  const isMostlyUtf8 = lines.some((line) => /[\u0100-\uFFFC]|[\u0080-\u00FF]/.test(line));
  if (isMostlyUtf8)
    throw new Error(`Line ${foreign + 1} is not UTF-8, as other lines are: save the file as UTF-8, and drop that.`);
  // Of this name, and with the signs of Windows-1252: as the web reads it, and spreadsheets write it.
  return { text: new TextDecoder('latin1').decode(bytes, { stream: true }), isLatin1: true };
}
