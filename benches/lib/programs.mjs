// The programs that benchmarks run: built from this repository, and a Python for the peers that need one.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ROOT, at, onnxRuntimeLibrary, targetDir } from '../../scripts/lib/paths.mjs';
import { StepFailed, output, run } from '../../scripts/lib/process.mjs';
import { cargoEnvironment, hostTriple } from '../../scripts/lib/setup.mjs';
import { fingerprint } from '../../scripts/lib/stamp.mjs';

const REQUIREMENTS = at('benches', 'peers', 'requirements.txt');
const VERSIONS = `
import importlib.metadata, json, sys

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

print(json.dumps({name: version(name) for name in sys.argv[1:]}))
`;
const EXECUTABLE = process.platform === 'win32' ? '.exe' : '';

/** What Rust programs that load models need to find. */
export function rustEnvironment() {
  return { SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '', ORT_DISABLE_TELEMETRY: '1' };
}

/**
 * Builds an example of one of the crates as the Rust tests are built (whole workspace, same profile and target), so that no
 * third-party crate is compiled again.
 *
 * @returns {Promise<string>} the program's path
 */
export async function rustExample(name) {
  const triple = hostTriple();
  const args = ['build', '--release', '--locked', '--target', triple, '--workspace', '--example', name];
  await mustBuild(args);
  return join(targetDir(), triple, 'release', 'examples', `${name}${EXECUTABLE}`);
}

/** Builds the criterion benchmark `name` of a crate (a folder of crates/). @returns {Promise<string>} the program's path */
export async function rustBench(crate, name) {
  const manifest = at('crates', crate, 'Cargo.toml');
  const args = ['bench', '--locked', '--target', hostTriple(), '--workspace', '--bench', name, '--no-run'];
  const artifacts = [];
  await mustBuild([...args, '--message-format=json'], (line) => {
    const message = line.startsWith('{') ? JSON.parse(line) : {};
    const ours = message.reason === 'compiler-artifact' && message.manifest_path === manifest;
    if (ours && message.target.name === name && message.executable) {
      artifacts.push(message.executable);
    }
  });
  if (artifacts.length !== 1)
    throw new StepFailed(`cargo built ${artifacts.length} benchmarks named ${name} of ${crate}`);
  return artifacts[0];
}

async function mustBuild(args, onLine = () => {}) {
  const lines = [];
  const options = { env: cargoEnvironment(), quiet: true };
  const code = await run('cargo', args, { ...options, onLine: (line) => (lines.push(line), onLine(line)) });
  if (code !== 0) throw new StepFailed(`\`cargo ${args.join(' ')}\` failed:\n${lines.slice(-30).join('\n')}`, code);
}

/**
 * A Python with the pinned packages of benches/peers/requirements.txt: SPARROW_BENCH_PYTHON, else a virtual environment in the
 * work folder, which is made when it is not there.
 *
 * @returns {Promise<{ path: string } | { skipped: string }>}
 */
export async function python(work) {
  if (process.env.SPARROW_BENCH_PYTHON) return { path: process.env.SPARROW_BENCH_PYTHON };
  const folder = join(work, 'python');
  const path = join(folder, process.platform === 'win32' ? 'Scripts' : 'bin', `python${EXECUTABLE}`);
  const wanted = readFileSync(REQUIREMENTS, 'utf8');
  const done = join(folder, 'requirements.done');
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return { path };
  if (output('python3', ['--version']) === undefined) return { skipped: 'there is no python3' };
  for (const [command, args] of [
    ['python3', ['-m', 'venv', folder]],
    [path, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS]],
  ]) {
    if ((await run(command, args, { quiet: true })) !== 0) {
      return { skipped: `\`${command} ${args.join(' ')}\` failed` };
    }
  }
  writeFileSync(done, wanted);
  return { path };
}

/**
 * The versions of Python packages that are installed, which may be others than the pinned ones: SPARROW_BENCH_PYTHON brings its own.
 *
 * @param {string} path an interpreter
 * @param {string[]} packages their names on PyPI
 * @returns {Promise<Record<string, string | null>>} null for what is not installed under this name
 */
export async function pythonVersions(path, packages) {
  const [versions] = await captureJson(path, ['-c', VERSIONS, ...packages]);
  return versions;
}

/** A command's standard output; what it says on standard error is only shown when it fails. After `seconds` it is ended, and has failed. */
export function capture(command, args, { env = {}, cwd = ROOT, input, seconds } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ORT_DISABLE_TELEMETRY: '1', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(seconds === undefined ? {} : { timeout: Math.ceil(1000 * seconds), killSignal: 'SIGKILL' }),
    });
    const [out, errors] = [[], []];
    child.stdout.on('data', (chunk) => out.push(chunk));
    child.stderr.on('data', (chunk) => errors.push(chunk));
    child.on('error', (error) => reject(new StepFailed(`cannot start ${command}: ${error.message}`)));
    child.on('close', (code, signal) => {
      const text = Buffer.concat(out).toString();
      if (code === 0) return resolve(text);
      const tail = `${text}\n${Buffer.concat(errors)}`.trim().split('\n').slice(-20).join('\n');
      const late = signal === 'SIGKILL' && seconds !== undefined ? `\nit was ended after ${seconds} s` : '';
      reject(new StepFailed(`\`${[command, ...args].join(' ')}\` ended with ${signal ?? code}:\n${tail}${late}`));
    });
    // A program that ends early closes its input; its exit code says enough.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** The JSON objects that a program prints, one a line; other lines are not for us. */
export async function captureJson(command, args, options) {
  const text = await capture(command, args, options);
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

/** Makes a folder and answers its path. */
export function folder(...parts) {
  const path = join(...parts);
  mkdirSync(path, { recursive: true });
  return path;
}

/**
 * A folder for what is expensive to make, kept for the next run as long as it would be made again the same; older ones go.
 *
 * @param {string} work
 * @param {string} name
 * @param {object} made what decides its contents
 * @param {string[]} made.crates folders of crates/ that write them
 * @param {string[]} [made.files] other files and folders of the repository, such as models
 * @param {unknown} [made.of] what they are made of, as JSON: texts, or how many there are
 */
export function keptFolder(work, name, { crates, files = [], of = null }) {
  const hash = createHash('sha256');
  hash.update(fingerprint([...crates.map((crate) => join('crates', crate)), ...files, 'Cargo.lock']));
  hash.update(JSON.stringify(of));
  const kept = `${name}-${hash.digest('hex').slice(0, 16)}`;
  for (const old of readdirSync(work)) {
    if (old.startsWith(`${name}-`) && old !== kept) rmSync(join(work, old), { recursive: true });
  }
  return folder(work, kept);
}

/** Writes rows as JSON, one a line, and answers the path of the file. */
export function writeLines(work, name, rows) {
  const file = join(work, `${name}.jsonl`);
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return file;
}
