import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file with {@link PASSAGES}, for clients in other languages and folders. */
export const PASSAGES_FILE = fileURLToPath(new URL('../fixtures/passages.json', import.meta.url));

/** Six short texts about different things, by a key for each. */
export const PASSAGES = JSON.parse(readFileSync(PASSAGES_FILE, 'utf8')) as Readonly<Record<string, string>>;
