// node benches/fusions/collections.mjs SQUAD-DIR OUT-DIR
//
// Collections to choose the defaults of hybrid search by, as `npm run eval` reads them: a sample of SQuAD's paragraphs
// and questions (20,958 paragraphs take too long to encode for an experiment), and three tasks on 5,000 of WordNet's
// glosses: a word and its definitions, an example of use and the definition, a synset and its neighbours. Also what the
// defaults may not lose on: codes, surnames, quoted phrases and two words. The same numbers every time: what is drawn, is
// drawn by a seed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { rows, sampler } from '../lib/collections.mjs';
import { identifiers } from '../lib/identifiers.mjs';
import { synsets } from '../lib/wordnet.mjs';

const [squad, out] = process.argv.slice(2);
if (!out) {
  console.error('usage: node benches/fusions/collections.mjs SQUAD-DIR OUT-DIR');
  process.exit(2);
}

const sample = sampler(42);

const lines = (rows) => gzipSync(`${rows.map((row) => JSON.stringify(row)).join('\n')}\n`);
function write(name, documents, queries, judgements) {
  const directory = join(out, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'corpus.jsonl.gz'), lines(documents));
  writeFileSync(join(directory, 'queries.jsonl.gz'), lines(queries));
  const table = [['query-id', 'corpus-id', 'score'], ...judgements].map((row) => row.join('\t'));
  writeFileSync(join(directory, 'qrels.test.tsv'), `${table.join('\n')}\n`);
  console.log(`${name}: ${documents.length} documents, ${queries.length} queries`);
}

function paragraphs() {
  const documents = rows(join(squad, 'corpus.jsonl.gz'));
  const queries = new Map(rows(join(squad, 'queries.jsonl.gz')).map((query) => [query._id, query]));
  const table = readFileSync(join(squad, 'qrels.dev.tsv'), 'utf8').trim().split('\n').slice(1);
  const judged = table.map((line) => line.split('\t'));
  const relevant = new Set(judged.map((row) => row[1]));
  const others = documents.filter((row) => !relevant.has(row._id)).map((row) => row._id);
  const wanted = new Set([...sample([...relevant].sort(), 1500), ...sample(others, 2500)]);
  const of = judged.filter((row) => wanted.has(row[1]) && Number(row[2]) > 0);
  const asked = sample([...new Set(of.map((row) => row[0]))].sort(), 1500);
  const kept = new Set(asked);
  write(
    'squad',
    documents.filter((row) => wanted.has(row._id)),
    asked.map((id) => queries.get(id)),
    of.filter((row) => kept.has(row[0])),
  );
}

function wordnet() {
  const drawn = sample(synsets(), 5000);
  const known = new Set(drawn.map((synset) => synset.id));
  const glosses = drawn.map((synset) => ({ _id: synset.id, title: '', text: synset.gloss }));

  const asked = sample(drawn, 1500);
  const byWord = new Map();
  for (const { id, words } of drawn) {
    for (const word of words) {
      const key = word.toLowerCase();
      byWord.set(key, (byWord.get(key) ?? new Set()).add(id));
    }
  }
  const words = [...new Set(asked.map((synset) => synset.words[0].toLowerCase()))];
  write(
    'wordnet-words',
    glosses,
    words.map((text, number) => ({ _id: `w${number}`, text })),
    words.flatMap((word, number) => [...byWord.get(word)].map((id) => [`w${number}`, id, 1])),
  );

  const withExample = drawn.filter(({ examples: [first] }) => first && first.split(' ').length >= 4);
  const examples = sample(withExample, 800);
  write(
    'wordnet-examples',
    glosses,
    examples.map((synset, number) => ({ _id: `e${number}`, text: synset.examples[0] })),
    examples.map((synset, number) => [`e${number}`, synset.id, 1]),
  );

  // Above, below and beside it.
  const near = (synset) =>
    synset.pointers.filter(({ kind, to }) => '@~&'.includes(kind) && known.has(to)).map(({ to }) => to);
  const related = sample(
    drawn.filter((synset) => near(synset).length > 0),
    800,
  );
  write(
    'wordnet-related',
    drawn.map((synset) => ({ _id: synset.id, title: synset.words.join(', '), text: synset.gloss })),
    related.map((synset, number) => ({ _id: `h${number}`, text: `${synset.words[0]}: ${synset.gloss}` })),
    related.flatMap((synset, number) =>
      [...new Set(near(synset))].filter((to) => to !== synset.id).map((to) => [`h${number}`, to, 1]),
    ),
  );
}

paragraphs();
wordnet();
const { documents, queries, judgements } = identifiers();
write('identifiers', documents, queries, judgements);
