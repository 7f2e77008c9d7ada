import process from 'node:process';

/** File name of the addon inside `native/` of this package's sources and inside a platform package. */
export const ADDON_FILE = 'sparrow.node';

/**
 * The name of the platform this process runs on, as the platform packages are called:
 * `@sparrow-search/engine-<name>`. Linux distinguishes glibc and musl, Windows its ABI.
 */
export function platformName(): string {
  const { platform, arch } = process;
  switch (platform) {
    case 'linux':
      return `linux-${arch}-${usesMusl() ? 'musl' : 'gnu'}`;
    case 'win32':
      return `win32-${arch}-msvc`;
    default:
      return `${platform}-${arch}`;
  }
}

/** glibc reports its version in the diagnostic report; musl has none. */
function usesMusl(): boolean {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime === undefined;
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
