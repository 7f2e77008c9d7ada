// The tables of docs/design/capacity.md: what a cluster of so many documents needs, computed from what was measured. Between
// `<!-- capacity: NAME -->` and `<!-- end -->` stands what is made from the records of the suites `cluster-capacity`, `cluster`, `http` and
// `sparse-search`, and what is made from that of `cluster-two-vectors`.
import { figure } from './rows.mjs';

const BLOCK = /<!-- capacity: (\w+) -->\n[\s\S]*?<!-- end -->/g;

/** What the tables are computed for, besides the measured constants; the page says so, and why. */
export const ASSUMED = {
  documents: [1e7, 1e8, 1e9],
  /** Copies of each shard besides the first. */
  replicas: 1,
  shardBytes: 30e9,
  shardSeconds: 0.1,
  searchesPerSecond: 10,
  loadDays: 10,
  /** The share of a core, and of a disk, that is to be in use. */
  busyCores: 0.5,
  fullDisk: 0.8,
};

const MILLION = 1e6;

/** The constants of the records, in seconds of a core and in bytes; undefined where one of the records is missing. */
export function constantsOf(records) {
  const [capacity, cluster, http] = ['cluster-capacity', 'cluster', 'http'].map((suite) => records.get(suite));
  if (capacity === undefined || cluster === undefined || http === undefined) return undefined;
  const row = (record, start) => {
    const found = record.rows.find(({ what }) => what.startsWith(start));
    if (found === undefined) throw new Error(`the record of ${record.suite} has no row [${start}]`);
    return found;
  };
  // The smallest shard comes first: what is left of a search where there is next to nothing to search.
  const perSearch = row(capacity, 'a search,').sparrow / MILLION;
  const large = largeShard(http);
  const perDocument = (large.seconds - perSearch) / large.documents;
  return {
    encode: row(capacity, 'encoding a passage').sparrow / MILLION,
    write: row(capacity, 'writing and merging').sparrow / MILLION,
    stored: row(capacity, 'a document on the disk').sparrow,
    searched: row(capacity, 'of which searches read').sparrow,
    perSearch,
    perDocument,
    inShard: (documents) => documents * perDocument,
    translate: row(cluster, 'a search, a text').detail.cpuMicros / MILLION,
    sparrowBytes: row(capacity, 'encoding a passage').detail.sparrowResident,
  };
}

/** A search of OpenSearch over a shard of some size, from the record of the suite `http`. */
function largeShard({ rows, notes }) {
  const documents = Number(/over (\d+) documents/.exec(notes.join())[1]);
  const { serverCpuMicros } = rows.find(({ what }) => what.startsWith('one client, p50')).detail.peer;
  return { documents, seconds: serverCpuMicros / MILLION };
}

/** The same constants of passages with two vectors, whose tokens are searched as those of others; undefined without their record. */
export function twoVectorsOf(records) {
  const record = records.get('cluster-two-vectors');
  const of = constantsOf(records);
  if (record === undefined || of === undefined) return undefined;
  const { rows } = record;
  const row = (start) => rows.find(({ what }) => what.startsWith(start));
  const largest = (kind) =>
    searchesOf(rows, kind)
      .filter(({ shards }) => shards === 1)
      .at(-1);
  const [tokens, most] = [largest('tokens'), largest('vector')];
  // A graph of n vectors is searched in steps whose number grows with the logarithm of n.
  const byVector = (documents) => (most.seconds * Math.log(documents)) / Math.log(most.documents);
  // Each shard counts as many hits as the one that was measured before it begins to skip documents, and only then is one as cheap as in a
  // large shard.
  const byTokens = (documents) => tokens.seconds + of.inShard(Math.max(0, documents - tokens.documents));
  return {
    ...of,
    // What a search costs whatever there is to search is in what it was measured to cost a shard.
    perSearch: 0,
    encode: row('encoding a passage').sparrow / MILLION,
    write: row('writing and merging').sparrow / MILLION,
    stored: row('a passage on the disk').sparrow,
    sent: row('of which is the document').sparrow,
    searched: row('of which searches read').sparrow,
    documents: most.documents,
    byVector,
    byTokens,
    inShard: (documents) => byTokens(documents) + byVector(documents),
    translate: row('a search with a text').sparrow / MILLION,
    sparrowBytes: row('encoding a passage').detail.sparrowResident,
  };
}

/** The searches of a record by tokens or by a vector, those in the smallest shard first. */
function searchesOf(rows, kind) {
  return rows
    .filter(({ detail }) => detail?.kind === kind)
    .map(({ sparrow, detail: { documents, shards } }) => ({ documents, shards, seconds: sparrow / MILLION }))
    .sort((one, other) => one.documents - other.documents);
}

/** What so many documents need. @param {Omit<NonNullable<ReturnType<typeof constantsOf>>, 'perDocument'>} of */
export function needed(of, documents, assumed = ASSUMED) {
  const { replicas, shardBytes, shardSeconds, searchesPerSecond, loadDays, busyCores, fullDisk } = assumed;
  const copies = 1 + replicas;
  const shards = Math.ceil(documents / mostInShard(of, shardBytes, shardSeconds));
  const searchSeconds = of.perSearch + shards * of.inShard(documents / shards);
  const loadSeconds = loadDays * 86_400;
  const cores = (seconds, perSecond) => (seconds * perSecond) / busyCores;
  return {
    documents,
    shards,
    inShard: documents / shards,
    shardSeconds: of.inShard(documents / shards),
    searchSeconds,
    diskBytes: (documents * of.stored * copies) / fullDisk,
    cachedBytes: documents * of.searched * copies,
    searchCores: cores(searchSeconds, searchesPerSecond),
    sparrowSearchCores: cores(of.translate, searchesPerSecond),
    encoderCores: cores(of.encode, documents / loadSeconds),
    writeCores: cores(of.write * copies, documents / loadSeconds),
  };
}

/** The most documents whose bytes and whose part of a search a shard may have. */
function mostInShard(of, shardBytes, shardSeconds) {
  let [least, most] = [1, shardBytes / of.stored];
  if (of.inShard(most) <= shardSeconds) return most;
  for (let step = 0; step < 60; step += 1) {
    const middle = (least + most) / 2;
    if (of.inShard(middle) <= shardSeconds) least = middle;
    else most = middle;
  }
  return least;
}

/** Fills the blocks of the page. @param {string} page @param {Map<string, object>} records by suite */
export function fillCapacity(page, records) {
  const constants = constantsOf(records);
  const two = twoVectorsOf(records);
  const made = {
    ...{ constants: constantsTable, sizes: sizesTable, check: checkTable, records: recordsLine },
    ...{ twoConstants: twoConstantsTable, twoSizes: sizesTable, twoCheck: twoCheckTable, twoRecord: twoRecordLine },
  };
  return page.replace(BLOCK, (whole, name) => {
    const make = made[name];
    if (make === undefined) throw new Error(`there is no table [${name}]`);
    const of = name.startsWith('two') ? two : constants;
    return of === undefined ? whole : `<!-- capacity: ${name} -->\n${make(of, records)}\n<!-- end -->`;
  });
}

const line = (cells) => `| ${cells.join(' | ')} |`;
const micros = (seconds) => `${figure(seconds * MILLION)} µs`;
const bytes = (count) => {
  const [unit, size] =
    count >= 1e12 ? ['TB', 1e12] : count >= 1e9 ? ['GB', 1e9] : count >= 1e6 ? ['MB', 1e6] : ['bytes', 1];
  return `${figure(count / size)} ${unit}`;
};
const count = (number) => Math.round(number).toLocaleString('en-US');

function constantsTable(of) {
  return [
    line(['', 'what', 'measured']),
    '|---|---|--:|',
    line(['E', 'a core’s time for Sparrow to encode a passage', micros(of.encode)]),
    line([
      'Q',
      'a core’s time for Sparrow to answer a search with a text: encoding, translating, passing on',
      micros(of.translate),
    ]),
    line([
      'W',
      'a core’s time for the cluster to write a document and to merge it into one segment, in each copy',
      micros(of.write),
    ]),
    line(['A', 'a core’s time of a search, whatever there is to search', micros(of.perSearch)]),
    line(['S', 'a core’s time of a search for each million documents', micros(of.perDocument * MILLION)]),
    line(['B', 'a document on the disk, with its texts and its tokens as they were sent', bytes(of.stored)]),
    line(['P', 'of which searches read: postings, terms, norms, columns', bytes(of.searched)]),
    line(['', 'memory of a Sparrow process with the model at work', bytes(of.sparrowBytes)]),
  ].join('\n');
}

function sizesTable(of) {
  const all = ASSUMED.documents.map((documents) => needed(of, documents));
  const row = (what, value) => line([what, ...all.map(value)]);
  return [
    line(['documents', ...all.map(({ documents }) => count(documents))]),
    `|---|${all.map(() => '--:').join('|')}|`,
    row('primary shards', ({ shards }) => count(shards)),
    row('documents in a shard', ({ inShard }) => count(inShard)),
    row('one shard’s part of a search', ({ shardSeconds }) => `${figure(shardSeconds * 1000)} ms`),
    row('a core’s time of a search, over all shards', ({ searchSeconds }) => `${figure(searchSeconds)} s`),
    row('disk, all copies', ({ diskBytes }) => bytes(diskBytes)),
    row('memory for what searches read, all copies', ({ cachedBytes }) => bytes(cachedBytes)),
    row('cluster’s cores for the searches', ({ searchCores }) => figure(searchCores)),
    row('Sparrow’s cores for the searches', ({ sparrowSearchCores }) => figure(sparrowSearchCores)),
    row('Sparrow’s cores to encode, while it is loaded', ({ encoderCores }) => figure(encoderCores)),
    row('cluster’s cores to write, while it is loaded', ({ writeCores }) => figure(writeCores)),
  ].join('\n');
}

/** What was measured apart from the constants, also by another record on another machine, against what they give. */
function checkTable(of, records) {
  const rows = records.get('cluster-capacity').rows;
  const shown = [];
  const add = (what, measured, computed, show) =>
    shown.push(line([what, show(measured), show(computed), figure(measured / computed)]));
  for (const { what, sparrow } of rows) {
    const documents = Number(/^a search, (\d+) documents in \d+ shards?$/.exec(what)?.[1]);
    if (Number.isNaN(documents)) continue;
    add(what, sparrow / MILLION, of.perSearch + documents * of.perDocument, micros);
  }
  const onDisk = rows.filter(({ what, peer }) => what.startsWith('a document on the disk') && peer !== null);
  for (const { what, sparrow, peer } of onDisk) add(what, sparrow, peer, bytes);
  for (const { what, detail } of records.get('sparse-search')?.rows ?? []) {
    const documents = Number(/^exact top 10, ([\d,]+) documents, p50$/.exec(what)?.[1].replaceAll(',', ''));
    const lucene = detail?.peer?.default === undefined ? undefined : Object.values(detail.peer);
    if (Number.isNaN(documents) || lucene === undefined) continue;
    const mean = Math.min(...lucene.map((mode) => mode.mean)) / 1000;
    add(
      `Lucene 10 alone, in process, one shard of ${count(documents)} documents`,
      mean,
      documents * of.perDocument,
      micros,
    );
  }
  return [line(['', 'measured', 'computed', 'ratio']), '|---|--:|--:|--:|', ...shown].join('\n');
}

function twoConstantsTable(of) {
  const shown = count(of.documents);
  return [
    line(['', 'what', 'measured']),
    '|---|---|--:|',
    line(['E', 'a core’s time for Sparrow to encode a passage by both models', micros(of.encode)]),
    line(['Q', 'a core’s time for Sparrow to answer a search with a text by both vectors', micros(of.translate)]),
    line(['W', 'a core’s time for the cluster to write a passage and to merge it into one segment', micros(of.write)]),
    line([
      'T',
      `a core’s time of a search by tokens in a shard of ${shown} passages`,
      micros(of.byTokens(of.documents)),
    ]),
    line([
      'V',
      `a core’s time of a search by a vector in a shard of ${shown} passages`,
      micros(of.byVector(of.documents)),
    ]),
    line(['B', 'a passage on the disk, with its text and both vectors as they were sent', bytes(of.stored)]),
    line(['', 'of which is the passage as it was sent, which only hits are read from', bytes(of.sent)]),
    line(['P', 'of which searches read: postings, terms, norms, vectors, graphs', bytes(of.searched)]),
    line(['', 'memory of a Sparrow process with both models at work', bytes(of.sparrowBytes)]),
  ].join('\n');
}

/** What the three shards took that were loaded with `--million`, against what the constants give. */
function twoCheckTable(of, records) {
  const { rows } = records.get('cluster-two-vectors');
  const find = (start) => rows.find(({ what }) => what.startsWith(start) && what.endsWith(' in three shards'));
  const written = find('writing and merging a passage');
  if (written === undefined) return 'Not measured yet: `--million` of the suite `cluster-two-vectors` does that.';
  const { documents } = written.detail;
  const [tokens, vector] = ['tokens', 'vector'].map((kind) => searchesOf(rows, kind).at(-1).seconds);
  const ofFiles = find('files that searches brought').sparrow;
  const shards = 3;
  const inShard = documents / shards;
  const shown = [
    ['disk', find('a passage on the disk').sparrow * documents, of.stored * documents, bytes],
    ['files that searches read', find('of which searches read').sparrow * documents, of.searched * documents, bytes],
    ['pages of them that the searches brought into memory', ofFiles, of.searched * documents, bytes],
    ['writing and merging, a passage', written.sparrow / MILLION, of.write, micros],
    ['a search by tokens', tokens, shards * of.byTokens(inShard), micros],
    ['a search by a vector', vector, shards * of.byVector(inShard), micros],
  ];
  return [
    line([`${count(documents)} passages in three shards`, 'measured', 'computed', 'ratio']),
    '|---|--:|--:|--:|',
    ...shown.map(([what, measured, computed, show]) =>
      line([what, show(measured), show(computed), figure(measured / computed)]),
    ),
  ].join('\n');
}

const recordsLine = (_, records) => linesOf(records, ['cluster-capacity', 'cluster', 'http']);
const twoRecordLine = (_, records) => linesOf(records, ['cluster-two-vectors']);

function linesOf(records, suites) {
  return suites
    .map((suite) => {
      const { command, date, commit, dirty, seconds, machine } = records.get(suite);
      const from = `commit ${commit?.slice(0, 10) ?? 'unknown'}${dirty ? ' with changes' : ''}`;
      const others =
        machine.load.otherCores === null
          ? ''
          : `; other processes used ${machine.load.otherCores} of ${machine.cores} cores`;
      const size = command.includes('--full') ? 'full' : 'quick';
      return `- \`${command}\`, ${date.slice(0, 10)}, ${from}, ${count(seconds)} s on ${machine.cpu}${others} ([record](../../benches/results/${suite}-${size}.json))`;
    })
    .join('\n');
}
