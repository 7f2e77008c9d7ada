// Lucene with one FeatureField term a token, through the launcher of the peers' folder: vectors in, index in the work folder, one
// process a mode. The jars come from Maven, once.
import { createWriteStream, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import process from 'node:process';

import { capture, folder } from './programs.mjs';
import { readVectors } from './vectors.mjs';

const OLDEST_JDK = 21;
const K = 10;
const CHUNK_BYTES = 1 << 24;
/** FeatureField keeps 9 significant bits of a weight: a score may be that much too low. */
export const LUCENE_TOLERANCE = 1 / 256;

/**
 * What every call needs, or why there is no Lucene.
 *
 * @param {import('./context.mjs').Context} context
 * @returns {Promise<{ launcher: string[] } | { skipped: string }>}
 */
export async function findLucene(context) {
  if (context.peers === undefined) return { skipped: 'no peers given (--peers)' };
  const home = findJdk(OLDEST_JDK);
  if (home === undefined) return { skipped: `no JDK from ${OLDEST_JDK} in JAVA_HOME or /usr/lib/jvm` };
  const source = join(context.peers, 'sparse', 'lucene');
  const jars = folder(context.work, 'peers', 'lucene-jars');
  if (!readdirSync(jars).some((name) => name.startsWith('lucene-core'))) {
    const goal = [
      '-q',
      '-B',
      '-f',
      join(source, 'pom.xml'),
      'dependency:copy-dependencies',
      `-DoutputDirectory=${jars}`,
    ];
    try {
      await capture('mvn', goal, { env: { JAVA_HOME: home } });
    } catch (error) {
      return { skipped: `Maven brings no Lucene: ${error.message.split('\n').slice(0, 3).join(' ')}` };
    }
  }
  const classes = folder(context.work, 'peers', 'lucene-classes');
  return { launcher: [join(source, 'lucene.sh'), home, jars, classes] };
}

/** The home of the newest JDK that is not older. */
export function findJdk(oldest) {
  const known = '/usr/lib/jvm';
  const homes = [
    process.env.JAVA_HOME,
    ...(existsSync(known) ? readdirSync(known).map((name) => join(known, name)) : []),
  ];
  return homes
    .filter((home) => home && existsSync(join(home, 'bin', 'javac')) && existsSync(join(home, 'release')))
    .map((home) => ({
      home,
      major: Number(/JAVA_VERSION="(\d+)/.exec(readFileSync(join(home, 'release'), 'utf8'))?.[1]),
    }))
    .filter(({ major }) => major >= oldest)
    .sort((a, b) => b.major - a.major)[0]?.home;
}

/**
 * Builds the index, unless it is there, merged into one segment.
 *
 * @returns {Promise<{ index: string, bytes: number, buildSeconds: number }>}
 */
export async function luceneIndex(context, lucene, docs, queries) {
  const home = folder(context.work, 'peers', basename(docs));
  const record = join(home, 'lucene.json');
  const index = join(home, 'lucene');
  if (!existsSync(record)) {
    context.log(`Lucene's index of ${basename(docs)}`);
    const input = join(home, 'docs.bin');
    await exportVectors(docs, input);
    const questions = await luceneQueries(context, queries);
    const args = ['--docs', input, '--queries', questions, '--index', folder(index), '--mode', 'none'];
    const text = await niced([...lucene.launcher, ...args]);
    rmSync(input);
    const bytes = Number(/index_bytes=(\d+)/.exec(text)[1]);
    const buildSeconds = Number(/merged_s=([\d.]+)/.exec(text)[1]);
    writeFileSync(
      record,
      JSON.stringify({ bytes, buildSeconds, version: /^lucene (\S+) java (\S+)/m.exec(text)?.slice(1) }),
    );
  }
  return { index, ...JSON.parse(readFileSync(record, 'utf8')) };
}

/**
 * Asks all questions in a JVM of its own.
 *
 * @param {'default' | 'exact'} mode `default` skips what cannot enter the ten once it has counted 1000 hits
 * @returns {Promise<{ p50: number, p95: number, mean: number, ids: Int32Array }>} milliseconds
 */
export async function searchLucene(context, lucene, index, queries, mode, { warmup, passes }) {
  const result = join(index, `..`, `lucene-${mode}.tsv`);
  const questions = await luceneQueries(context, queries);
  const text = await capture('bash', [
    ...lucene.launcher,
    ...['--reuse', '--queries', questions, '--index', index, '--mode', mode, '--out', result],
    ...['--warmup', `${warmup}`, '--reps', `${passes}`],
  ]);
  const line = /^mode=.*$/m.exec(text)[0];
  const value = (name) => Number(new RegExp(`${name}=([\\d.]+)`).exec(line)[1]);
  const count = Number(/queries=(\d+)/.exec(text)[1]);
  const ids = new Int32Array(count * K).fill(-1);
  for (const row of readFileSync(result, 'utf8').split('\n')) {
    const [, question, rank, document] = row.split('\t');
    if (document !== undefined) ids[Number(question) * K + Number(rank) - 1] = Number(document);
  }
  return { p50: value('p50'), p95: value('p95'), mean: value('mean_ms'), ids };
}

async function luceneQueries(context, queries) {
  const file = join(folder(context.work, 'peers'), `${basename(queries)}.bin`);
  if (!existsSync(file)) await exportVectors(queries, file);
  return file;
}

const niced = ([script, ...args]) => capture('nice', ['-n', '19', 'bash', script, ...args]);

/** The launcher's own format: for each row its length-prefixed id, the number of terms, and for each the token and its weight. */
async function exportVectors(prefix, file) {
  const { ptr, idx, val, rows } = readVectors(prefix);
  const tokens = new Map();
  const token = (term) => {
    if (!tokens.has(term)) {
      const name = Buffer.from(`t${term}`);
      const bytes = Buffer.alloc(4 + name.length);
      bytes.writeUInt32LE(name.length);
      name.copy(bytes, 4);
      tokens.set(term, bytes);
    }
    return tokens.get(term);
  };
  const out = createWriteStream(file);
  let [chunk, used] = [Buffer.allocUnsafe(CHUNK_BYTES), 0];
  for (let row = 0; row < rows; row += 1) {
    const id = `${row}`;
    used = chunk.writeUInt32LE(id.length, used);
    used += chunk.write(id, used);
    used = chunk.writeUInt32LE(ptr[row + 1] - ptr[row], used);
    for (let at = ptr[row]; at < ptr[row + 1]; at += 1) {
      used += token(idx[at]).copy(chunk, used);
      used = chunk.writeFloatLE(val[at], used);
    }
    // A row is far below a megabyte.
    if (used > CHUNK_BYTES - (1 << 20) || row === rows - 1) {
      if (!out.write(chunk.subarray(0, used))) await once(out, 'drain');
      [chunk, used] = [Buffer.allocUnsafe(CHUNK_BYTES), 0];
    }
  }
  out.end();
  await once(out, 'close');
}
