// The tables of docs/design/capacity.md: what a cluster of so many documents needs, computed from what was measured. Between
// `<!-- capacity: NAME -->` and `<!-- end -->` stands what is made from the records of the suites `cluster-capacity`, `cluster`, `http` and
// `sparse-search`.
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
  return {
    encode: row(capacity, 'encoding a passage').sparrow / MILLION,
    write: row(capacity, 'writing and merging').sparrow / MILLION,
    stored: row(capacity, 'a document on the disk').sparrow,
    searched: row(capacity, 'of which searches read').sparrow,
    perSearch,
    perDocument: (large.seconds - perSearch) / large.documents,
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

/** What so many documents need. @param {ReturnType<typeof constantsOf>} of */
export function needed(of, documents, assumed = ASSUMED) {
  const { replicas, shardBytes, shardSeconds, searchesPerSecond, loadDays, busyCores, fullDisk } = assumed;
  const copies = 1 + replicas;
  const shards = Math.ceil(documents / Math.min(shardBytes / of.stored, shardSeconds / of.perDocument));
  const searchSeconds = of.perSearch + documents * of.perDocument;
  const loadSeconds = loadDays * 86_400;
  const cores = (seconds, perSecond) => (seconds * perSecond) / busyCores;
  return {
    documents,
    shards,
    inShard: documents / shards,
    shardSeconds: (documents / shards) * of.perDocument,
    searchSeconds,
    diskBytes: (documents * of.stored * copies) / fullDisk,
    cachedBytes: documents * of.searched * copies,
    searchCores: cores(searchSeconds, searchesPerSecond),
    sparrowSearchCores: cores(of.translate, searchesPerSecond),
    encoderCores: cores(of.encode, documents / loadSeconds),
    writeCores: cores(of.write * copies, documents / loadSeconds),
  };
}

/** Fills the blocks of the page. @param {string} page @param {Map<string, object>} records by suite */
export function fillCapacity(page, records) {
  const constants = constantsOf(records);
  if (constants === undefined) return page;
  const made = { constants: constantsTable, sizes: sizesTable, check: checkTable, records: recordsLine };
  return page.replace(BLOCK, (_, name) => {
    const make = made[name];
    if (make === undefined) throw new Error(`there is no table [${name}]`);
    return `<!-- capacity: ${name} -->\n${make(constants, records)}\n<!-- end -->`;
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

/** What the record measured again at a larger size, and a search that another record measured on another machine. */
/** What was measured apart from the constants, against what they give. */
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

function recordsLine(_, records) {
  return ['cluster-capacity', 'cluster', 'http']
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
