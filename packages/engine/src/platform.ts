import { readFileSync } from 'node:fs';
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

const HERE: Platform = { os: process.platform, cpu: process.arch, usesMusl: () => isMusl(mappedFiles()) };

/**
 * The name of a platform, by default the one this process runs on, as the platform packages are called:
 * `@sparrow-search/engine-<name>`. Linux distinguishes glibc and musl.
 */
export function platformName({ os, cpu, usesMusl }: Platform = HERE): string {
  return os === 'linux' ? `linux-${cpu}-${usesMusl() ? 'musl' : 'gnu'}` : `${os}-${cpu}`;
}

/**
 * Whether the lines of `/proc/PID/maps` are of a process that musl's loader started. A diagnostic report of Node would tell the C library too,
 * but asks name servers, one after the other on this thread, what each connected client is called.
 */
export function isMusl(maps: string): boolean {
  return /\/ld-musl-[^/]*$/m.test(maps);
}

/** The files that are mapped into this process; none where the system does not show them. */
function mappedFiles(): string {
  try {
    return readFileSync('/proc/self/maps', 'utf8');
  } catch {
    return '';
  }
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
