// The release workflow has not run here: what can be said without its runners is that it builds, tries and publishes all platforms of
// the table, and that every command that it calls is there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';
import { parse } from 'yaml';

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly needs?: string | readonly string[];
  readonly steps: readonly Step[];
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
  readonly permissions?: Readonly<Record<string, string>>;
}
interface Platform {
  readonly name: string;
  readonly os: string;
  readonly triple: string;
}
interface Native {
  readonly platform: string;
  readonly triple: string;
  readonly library: string;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { jobs } = parse(read('.github/workflows/release.yml')) as { jobs: Readonly<Record<string, Job>> };
const { PLATFORMS, libraryFile } = (await import(new URL('../../scripts/lib/platforms.mjs', import.meta.url).href)) as {
  PLATFORMS: readonly Platform[];
  libraryFile: (os: string) => string;
};
const manifest = JSON.parse(read('package.json')) as Record<'scripts' | 'devDependencies', Record<string, string>>;
const lines = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run.trim().split('\n')));
const native = (jobs['native']?.strategy?.matrix['include'] ?? []) as readonly Native[];
const needed = (job: string): readonly string[] => [jobs[job]?.needs ?? []].flat();

it('builds the addon for every platform, each once', () => {
  const [crossed = ''] = lines.filter((line) => line.includes('scripts/cross.mjs'));
  const [, names = ''] = /cross\.mjs (.+) --out addons$/.exec(crossed) ?? [];
  const built = [...names.split(' '), ...native.map(({ platform }) => platform)];
  expect(built.toSorted()).toEqual(PLATFORMS.map(({ name }) => name).toSorted());
});

it.each(native)('builds $platform for the target and as the library that the table says', (row) => {
  const platform = PLATFORMS.find(({ name }) => name === row.platform);
  expect({ triple: row.triple, library: row.library }).toEqual({
    triple: platform?.triple,
    library: libraryFile(platform?.os ?? ''),
  });
});

it('publishes what was packed and tried, and only there has the rights for it', () => {
  expect(needed('pack')).toEqual(['linux', 'native']);
  expect(needed('try')).toEqual(['pack']);
  expect(needed('try-musl')).toEqual(['pack']);
  expect(needed('publish')).toEqual(['try', 'try-musl']);
  const entitled = Object.entries(jobs).filter(([, { permissions }]) => permissions?.['id-token'] === 'write');
  expect(entitled.map(([name]) => name)).toEqual(['publish']);
});

it('calls commands that are there', () => {
  const called = lines.flatMap((line) => [...line.matchAll(/^(node|npm run|npx) (\S+)/g)]);
  expect(called.length).toBeGreaterThan(5);
  for (const [, by, what = ''] of called) {
    if (by === 'node') expect(existsSync(join(ROOT, what)), what).toBe(true);
    else if (by === 'npm run') expect(Object.keys(manifest.scripts)).toContain(what);
    else expect(existsSync(join(ROOT, 'node_modules', '.bin', what)), what).toBe(true);
  }
});

it('leaves no right to push behind, where it checks out', () => {
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@') === true);
  expect(checkouts).toHaveLength(Object.keys(jobs).length);
  for (const checkout of checkouts) expect(checkout.with).toMatchObject({ 'persist-credentials': false });
});
