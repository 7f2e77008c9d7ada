import process from 'node:process';

/** File name of the addon inside `native/` of this package's sources and inside a platform package. */
export const ADDON_FILE = 'sparrow.node';

/** What tells platforms apart; the process's own unless a test says otherwise. */
export interface Platform {
  /** The operating system, as `process.platform` names it. */
  readonly os: string;
  /** The processor, as `process.arch` names it. */
  readonly cpu: string;
  /** Whether the C library is musl; only asked on Linux. */
  readonly usesMusl: () => boolean;
}

const HERE: Platform = { os: process.platform, cpu: process.arch, usesMusl: () => isMusl(process.report.getReport()) };

/**
 * The name of a platform, by default the one this process runs on, as the platform packages are called:
 * `@sparrow-search/engine-<name>`. Linux distinguishes glibc and musl.
 */
export function platformName({ os, cpu, usesMusl }: Platform = HERE): string {
  return os === 'linux' ? `linux-${cpu}-${usesMusl() ? 'musl' : 'gnu'}` : `${os}-${cpu}`;
}

/** Whether a diagnostic report of Node comes from a process on musl: glibc reports its version there, musl has none. */
export function isMusl(report: object): boolean {
  const { header } = report as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined;
}

/** Names under which ONNX Runtime's shared library is shipped on this operating system, best first. */
export function runtimeLibraryNames(): readonly string[] {
  switch (process.platform) {
    case 'win32':
      return ['onnxruntime.dll'];
    case 'darwin':
      return ['libonnxruntime.1.dylib', 'libonnxruntime.dylib'];
    default:
      return ['libonnxruntime.so.1', 'libonnxruntime.so'];
  }
}
