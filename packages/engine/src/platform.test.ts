import process from 'node:process';

import { describe, expect, it } from 'vitest';

import { withoutAddon } from './binding.js';
import { isMusl, platformName } from './platform.js';

const platform = (os: string, cpu: string, musl = false) => ({ os, cpu, usesMusl: () => musl });

const MANIFEST = {
  version: '1.2.3',
  optionalDependencies: {
    '@sparrow-search/engine-linux-x64-gnu': '1.2.3',
    '@sparrow-search/engine-darwin-arm64': '1.2.3',
  },
};

describe('the platform', () => {
  it.each([
    [platform('linux', 'x64'), 'linux-x64-gnu'],
    [platform('linux', 'arm64', true), 'linux-arm64-musl'],
    [platform('darwin', 'arm64'), 'darwin-arm64'],
    [platform('win32', 'x64'), 'win32-x64'],
  ])('%j is called %s', (given, name) => {
    expect(platformName(given)).toBe(name);
  });

  it('has musl where Node reports no version of glibc', () => {
    // Both as Node prints them, but for what does not matter.
    expect(isMusl({ header: { osName: 'Linux', glibcVersionCompiler: '2.28', glibcVersionRuntime: '2.36' } })).toBe(
      false,
    );
    expect(isMusl({ header: { osName: 'Linux' } })).toBe(true);
  });

  it('of this process is told by what it reports', () => {
    const [os = '', cpu = ''] = platformName().split('-');
    expect([os, cpu]).toEqual([process.platform, process.arch]);
  });
});

describe('who has no addon', () => {
  it('is told the command that installs it, where there is one', () => {
    const sentence = withoutAddon('linux-x64-gnu', MANIFEST);
    expect(sentence).toContain('`npm install @sparrow-search/engine-linux-x64-gnu@1.2.3`');
    expect(sentence).not.toContain('npm run build');
  });

  it('is told the platforms that there are, where this is not one of them', () => {
    const sentence = withoutAddon('freebsd-x64', MANIFEST);
    expect(sentence).toContain(
      'no package for this platform, freebsd-x64; there are packages for linux-x64-gnu, darwin-arm64.',
    );
  });
});
