import { mkdtemp, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { describe, expect, it } from 'vitest';

// Scripts are not compiled.
const { ROOT } = (await import(new URL('../../scripts/lib/paths.mjs', import.meta.url).href)) as { ROOT: string };
const { fingerprint } = (await import(new URL('../../scripts/lib/stamp.mjs', import.meta.url).href)) as {
  fingerprint: (inputs: readonly string[]) => string;
};

describe('what a step of the set-up read', () => {
  it('is told by contents: a copy or a checkout that is touched has nothing to do', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sparrow-stamp-'));
    const path = join(folder, 'a.rs');
    const print = () => fingerprint([relative(ROOT, folder)]);
    await writeFile(path, 'one');
    const before = print();
    await utimes(path, 1, 1);
    expect(print()).toBe(before);
    await writeFile(path, 'two');
    expect(print()).not.toBe(before);
    await writeFile(path, 'one');
    expect(print()).toBe(before);
    await writeFile(join(folder, 'b.rs'), '');
    expect(print()).not.toBe(before);
  });
});
