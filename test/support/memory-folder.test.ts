// The folder in memory that the first tier keeps its temporary files in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statfsSync } from 'node:fs';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

import { describe, expect, it } from 'vitest';

import { at } from '../../scripts/lib/paths.mjs';

const MODULE = pathToFileURL(at('scripts', 'lib', 'memory-folder.mjs')).href;

/** Starts a process that makes the folder, waits, and ends as it is told to. */
async function folderOf(ending: 'signal' | 'by itself'): Promise<{ made: string; left: boolean }> {
  const script = `
    import { memoryFolder } from '${MODULE}';
    process.stdout.write(JSON.stringify(memoryFolder()));
    ${ending === 'signal' ? 'setInterval(() => {}, 1000);' : ''}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  const { TMPDIR: made } = JSON.parse(said.toString()) as { TMPDIR: string };
  if (ending === 'signal') {
    expect(existsSync(made)).toBe(true);
    child.kill('SIGTERM');
  }
  await once(child, 'close');
  return { made, left: existsSync(made) };
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > 5 * 2 ** 30;
  } catch {
    return false;
  }
}

describe.skipIf(!hasRoom())('the folder in memory (skipped where /dev/shm is missing or small)', () => {
  it.each(['by itself', 'signal'] as const)('goes with the process that made it: %s', async (ending) => {
    expect(await folderOf(ending)).toEqual({ made: expect.stringMatching(/^\/dev\/shm\/sparrow-tests-/), left: false });
  });
});
