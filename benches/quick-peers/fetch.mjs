// Fetches other engines from the registries that hold them, each on its own: what cannot be had is said, and the others go on. All of it
// goes into a folder that the caller names.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { output } from '../../scripts/lib/process.mjs';
import { findJdk } from '../lib/lucene.mjs';
import { capture, folder } from '../lib/programs.mjs';

/** Compiling what has no wheel may take minutes; more than this is not worth waiting for. */
const SECONDS = 240;
const LUCENE = at('benches', 'peers', 'lucene');

/** What each engine of Python needs, in the order in which it is installed: those of benches/peers/requirements.txt in the versions there. */
export const PYTHON = {
  seismic: ['numpy', 'pyseismic-lsr'],
  bmp: ['numpy', 'bmp'],
  // Without the packages around it, which want a JVM.
  pisa: ['numpy', 'tbb==2020.3.254', '--no-deps pyterrier-pisa==0.4.9'],
  bm25s: ['numpy', 'scipy', 'numba', 'bm25s==0.3.16'],
  tantivy: ['numpy', 'tantivy==0.27.0'],
  hnswlib: ['numpy', 'hnswlib'],
  faiss: ['numpy', 'faiss-cpu'],
  usearch: ['numpy', 'usearch'],
};
export const NODE = {
  minisearch: 'minisearch@7.2.0',
  flexsearch: 'flexsearch@0.8.212',
  orama: '@orama/orama@3.1.18',
  lunr: 'lunr@2.3.9',
};

/** How engines are called in charts. */
export const TITLES = {
  ...{
    seismic: 'Seismic',
    bmp: 'BMP',
    pisa: 'PISA (pyterrier-pisa)',
    bm25s: 'bm25s',
    tantivy: 'tantivy',
    hnswlib: 'hnswlib',
  },
  ...{
    faiss: 'FAISS',
    usearch: 'usearch',
    minisearch: 'MiniSearch',
    flexsearch: 'FlexSearch',
    orama: 'Orama',
    lunr: 'Lunr',
  },
  lucene: 'Lucene',
};

/** An engine's name with the version at the end of what was installed. */
const titled = (name, spec) => `${TITLES[name]} ${/\d[\w.]*$/.exec(spec)[0]}`;

/**
 * An engine that is there, with what runs it, or why it is not.
 *
 * @typedef {{ name: string, version?: string, python?: string, modules?: string, java?: string[], skipped?: string }} Engine
 */

/** The first line of what went wrong. */
const reason = (error) => error.message.trim().split('\n').at(-1).slice(0, 200);

/** @returns {Promise<Map<string, Engine>>} by name */
export async function fetchPeers(cache, log) {
  const found = new Map();
  const add = (engine) => {
    log(`${engine.name}: ${engine.skipped === undefined ? engine.version : `not there: ${engine.skipped}`}`);
    found.set(engine.name, engine);
  };
  const python = await pythonIn(cache);
  const tried = new Map();
  for (const [name, packages] of Object.entries(PYTHON)) add(await pythonEngine(python, name, packages, tried));
  for (const [name, spec] of Object.entries(NODE)) add(await nodeEngine(cache, name, spec));
  add(await lucene(cache));
  return found;
}

/** An interpreter of its own in the cache. */
async function pythonIn(cache) {
  if (output('python3', ['--version']) === undefined) return { skipped: 'there is no python3' };
  const home = join(cache, 'python');
  const path = join(home, 'bin', 'python');
  try {
    if (!existsSync(path)) await capture('python3', ['-m', 'venv', home], { seconds: SECONDS });
    return { path };
  } catch (error) {
    return { skipped: reason(error) };
  }
}

/** `numpy==2.4.6` from the name alone. */
function pinned(name) {
  const lines = readFileSync(at('benches', 'peers', 'requirements.txt'), 'utf8').split('\n');
  return lines.find((line) => line.startsWith(`${name}==`)) ?? name;
}

async function pythonEngine(python, name, packages, tried) {
  if (python.skipped !== undefined) return { name, skipped: python.skipped };
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  for (const wanted of packages) {
    const spec = pinned(wanted);
    if (!tried.has(spec)) {
      const args = [...pip, ...spec.split(' ')];
      tried.set(
        spec,
        await capture(python.path, args, { seconds: SECONDS }).then(
          () => undefined,
          (error) => `${spec}: ${reason(error)}`,
        ),
      );
    }
    if (tried.get(spec) !== undefined) return { name, skipped: tried.get(spec) };
  }
  return { name, version: titled(name, pinned(packages.at(-1))), python: python.path };
}

async function nodeEngine(cache, name, spec) {
  const modules = join(cache, 'node');
  if (!existsSync(modules)) {
    mkdirSync(modules, { recursive: true });
    writeFileSync(join(modules, 'package.json'), '{"private":true}');
  }
  const args = ['install', '--save-exact', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', spec];
  try {
    await capture('npm', args, { cwd: modules, seconds: SECONDS });
    return { name, version: titled(name, spec), modules };
  } catch (error) {
    return { name, skipped: reason(error) };
  }
}

/** Lucene 10 where there is a JDK from 21 on, else 9. */
async function lucene(cache) {
  const [name, newest] = ['lucene', findJdk(21)];
  const home = newest ?? findJdk(17);
  if (home === undefined) return { name, skipped: 'no JDK from 17 on in JAVA_HOME or /usr/lib/jvm' };
  const [jars, classes] = [folder(cache, 'lucene', newest ? '10' : '9'), folder(cache, 'lucene', 'classes')];
  const options = { env: { JAVA_HOME: home }, seconds: SECONDS };
  try {
    if (!readdirSync(jars).some((jar) => jar.startsWith('lucene-core'))) {
      const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${jars}`, ...(newest ? [] : ['-Pjdk17'])];
      await capture('mvn', ['-q', '-B', '-f', join(LUCENE, 'pom.xml'), ...goal], options);
    }
    const path = [`${jars}/*`, classes].join(process.platform === 'win32' ? ';' : ':');
    await capture(join(home, 'bin', 'javac'), ['-cp', path, '-d', classes, join(LUCENE, 'LuceneWords.java')], options);
    const core = readdirSync(jars).find((jar) => jar.startsWith('lucene-core'));
    const flags = newest ? ['--add-modules=jdk.incubator.vector', '--enable-native-access=ALL-UNNAMED'] : [];
    const java = [join(home, 'bin', 'java'), '-Xmx2g', ...flags, '-cp', path, 'LuceneWords'];
    return { name, version: titled(name, core.replace('.jar', '')), java };
  } catch (error) {
    return { name, skipped: reason(error) };
  }
}
