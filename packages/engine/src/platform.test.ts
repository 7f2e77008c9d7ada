import process from 'node:process';

import { describe, expect, it, vi } from 'vitest';

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

  it('has musl where its loader is mapped', () => {
    const node = '55d0c2a00000-55d0c3200000 r--p 00000000 fe:00 1188  /usr/local/bin/node\n';
    const glibc =
      '7f2c1a7f6000-7f2c1a7f7000 r--p 00000000 fe:00 2093  /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n';
    const musl = '7f90aa2c1000-7f90aa2d5000 r--p 00000000 fe:00 319  /lib/ld-musl-x86_64.so.1\n';
    expect([node + glibc, node + musl].map(isMusl)).toEqual([false, true]);
  });

  it('of this process is told without a report, which would ask for the names of connected clients', () => {
    // eslint-disable-next-line no-restricted-properties -- nobody may ask for it
    const report = vi.spyOn(process.report, 'getReport');
    const [os = '', cpu = ''] = platformName().split('-');
    expect([os, cpu]).toEqual([process.platform, process.arch]);
    expect(report).not.toHaveBeenCalled();
    report.mockRestore();
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
