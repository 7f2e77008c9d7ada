// What tells files of other programs from texts, for `sparrow import` and the console. It has no imports, as it runs in browsers too.

/** Names of spreadsheets, which can be saved as CSV. */
export const SPREADSHEET = /\.(?:xls[xmb]?|ods)$/i;

/** Names of other files that hold no plain text, whatever their bytes look like. */
export const NO_TEXT_NAME = /\.(?:pdf|docx?|pptx?|odt|epub|rtf|png|jpe?g|gif|zip)$/i;

/** Whether there is a byte that no text has: a control character that is neither a space nor an escape. */
export function hasControls(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte < 9 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32));
}
