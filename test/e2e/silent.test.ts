// The server sends nothing and writes nothing outside its data directory, though ONNX Runtime would do both.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const CLI = at('../../packages/server/dist/cli.js');
const WORLD = at('../support/silent-world.mjs');
const MODELS = at('../../crates/encoder/tests/fixtures');
const NAMESPACES = ['--user', '--map-root-user', '--net', '--mount'];

/** Why there is no network of one's own here; undefined where there is. */
function obstacle(): string | undefined {
  if (process.platform !== 'linux') return 'there are no network namespaces';
  const tried = spawnSync('unshare', [...NAMESPACES, 'ip', 'link', 'add', 'a0', 'type', 'veth', 'peer', 'name', 'a1']);
  return tried.status === 0 ? undefined : `no network namespace: ${String(tried.error ?? tried.stderr)}`;
}

describe('a server in a network of its own', () => {
  it('sends no packet and writes no file outside its data directory', async (context) => {
    const reason = obstacle();
    if (reason !== undefined) context.skip(reason);
    const folder = await mkdtemp(join(tmpdir(), 'sparrow-silent-'));
    try {
      const args = [...NAMESPACES, process.execPath, WORLD, CLI, folder, MODELS];
      const { stdout } = await promisify(execFile)('unshare', args);
      const report = JSON.parse(stdout) as Record<string, unknown>;
      expect(report['counted'], 'packets are counted').toBeGreaterThan(0);
      expect(report).toMatchObject({
        ...{ hits: 1, inferred: 1, code: 0 },
        // The embedded models need no ONNX Runtime; this one does.
        ...{ loadedAtStart: false, loadedByEmbedded: false, loadedByOwn: true },
        ...{ sent: 0, written: [], beside: ['data', 'home', 'resolv.conf', 'tmp'] },
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }, 120_000);
});
