// The stamp file remembers what each set-up step was last done with, so that an unchanged tree starts without calling npm,
// cargo or tsc. Inputs are compared by what they contain (some 7 MB, a twentieth of a second) and by their place in the tree: a
// checkout that is copied with its results, or touched by git, has nothing to do.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ROOT, STAMP } from './paths.mjs';

const SKIPPED = new Set(['node_modules', 'dist', 'native', 'target', '.git']);

/** A fingerprint of files and folders, given relative to the root; missing ones count as such. */
export function fingerprint(inputs) {
  const hash = createHash('sha256');
  hash.update(`${process.version} ${process.platform} ${process.arch}\n`);
  const visit = (relative) => {
    const path = join(ROOT, relative);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      hash.update(`${relative} -\n`);
    } else if (stat.isDirectory()) {
      for (const name of readdirSync(path).sort()) {
        if (!SKIPPED.has(name)) visit(join(relative, name));
      }
    } else {
      hash.update(`${relative} ${stat.size}\n`).update(readFileSync(path));
    }
  };
  inputs.forEach(visit);
  return hash.digest('hex');
}

/** Whether `step` was last done with this fingerprint and its results are still there. */
export function isDone(step, print, results) {
  return readStamp()[step] === print && results.every((path) => existsSync(path));
}

export function markDone(step, print) {
  const next = { ...readStamp(), [step]: print };
  writeFileSync(`${STAMP}.tmp`, JSON.stringify(next, null, 2));
  renameSync(`${STAMP}.tmp`, STAMP);
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, 'utf8'));
  } catch {
    return {};
  }
}
