// Writes packages/engine/src/addon.generated.ts from what napi-derive says about the addon's exports. napi-derive leaves one
// JSON line per exported item in NAPI_TYPE_DEF_TMP_FOLDER while the crate compiles; this is the small part of @napi-rs/cli
// that the project needs, without its hundred dependencies.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ADDON_TYPES, targetDir } from './paths.mjs';

const HEADER = `// Generated from crates/node by scripts/lib/addon-types.mjs: do not edit.
/* eslint-disable */
`;

/** The folder that napi-derive writes to; it must exist before the crate compiles. */
export function typeDefinitionFolder() {
  const folder = join(targetDir(), 'napi-types');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Rewrites the generated file if the addon's exports changed. Says whether it did. */
export function writeAddonTypes() {
  const folder = typeDefinitionFolder();
  const lines = readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== ''),
  );
  // Cargo had nothing to compile: the committed file stands.
  if (lines.length === 0) return false;

  const items = new Map();
  for (const { kind, name, js_doc: doc, def } of lines.map((line) => JSON.parse(line))) {
    const item = items.get(name) ?? { name, kind, doc: '', members: '' };
    if (kind !== 'impl') Object.assign(item, { kind, doc });
    if (def !== '') item.members = def;
    items.set(name, item);
  }
  const text =
    HEADER +
    [...items.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, kind, doc, members }) => {
        if (kind === 'fn') return `\n${doc}export declare ${members}\n`;
        const head = kind === 'interface' ? `export interface ${name}` : `export declare class ${name}`;
        const body = members
          .split('\n')
          .map((line) => (line.trim() === '' ? '' : `  ${line.trim().replace(/^\*/, ' *')}`))
          .join('\n');
        return `\n${doc}${head} {\n${body}\n}\n`;
      })
      .join('');
  if (existsSync(ADDON_TYPES) && readFileSync(ADDON_TYPES, 'utf8') === text) return false;
  writeFileSync(ADDON_TYPES, text);
  return true;
}
