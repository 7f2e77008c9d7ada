// Puts the committed index of the old format into the data directory of a server that is not running.
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';

import { IndexModel } from './model.mjs';
import { Register } from './register.mjs';

const FIXTURE = fileURLToPath(new URL('../fixtures/format-1', import.meta.url));
const DOCUMENTS = 400;

/** The source of document `n`, as `crates/engine/examples/make_format_1_fixture.rs` made it. */
function sourceOf(n) {
  const tokens = new Set();
  for (let i = 0; i < 12; i += 1) {
    const token = (n * 7 + i * i * 13 + i) % 60;
    const weight = (((n * 31 + token * 17) % 290) + 10) / 100;
    tokens.add(`"token${token}":${weight}`);
  }
  return `{"tokens":{${[...tokens].sort().join(',')}},"title":"document number ${n}","n":${n}}`;
}

/**
 * Adds the index under a name of its own.
 *
 * @param {string} data the data directory, made where it is not there
 * @param {string} name
 * @returns {IndexModel} what the server must have then
 */
export function plantOldIndex(data, name, owner) {
  const store = readdirSync(join(FIXTURE, 'store')).find((file) => file.startsWith('index-'));
  const { value } = JSON.parse(readFileSync(join(FIXTURE, 'store', store), 'utf8'));
  const original = value.uuid;
  value.name = name;
  // As long as the original and no other's: 22 characters of the alphabet of identifiers.
  value.uuid = Buffer.from(name.padEnd(16, '.')).toString('base64url').slice(0, 22);
  for (const folder of ['store', 'indices']) mkdirSync(join(data, folder), { recursive: true });
  cpSync(join(FIXTURE, 'indices', original), join(data, 'indices', value.uuid), { recursive: true });
  const text = JSON.stringify(value);
  const envelope = `{"format":1,"checksum":${crc32(text)},"value":${text}}\n`;
  writeFileSync(join(data, 'store', `index-${value.uuid}.json`), envelope);
  const index = new IndexModel(name, { owner, ordinal: owner, shape: 'old', volatile: true });
  for (let n = 0; n < DOCUMENTS; n += 1) {
    index.docs.set(String(n), new Register({ source: sourceOf(n), version: undefined, seqNo: undefined }));
  }
  return index;
}
