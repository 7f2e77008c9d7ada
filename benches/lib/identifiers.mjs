// 200 questions that somebody types who knows what stands in a document: codes, surnames, quoted phrases, pairs of words. They and the
// documents are made by rule from WordNet's glosses, so that what answers a question is known without anybody's judgement: the documents
// that have it, letter by letter.
import { sampler } from './collections.mjs';
import { synsets } from './wordnet.mjs';

const DOCUMENTS = 2000;
/** Questions of each kind. */
const QUESTIONS = 50;
/** A phrase has so many words. */
const PHRASE = 3;
/** Words of phrases and pairs are in at most so many documents, but for the small words of phrases. */
const MOST_HOLDING = 20;
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

const sample = sampler(7);
const one = (list) => sample(list, 1)[0];
const words = (text) => text.toLowerCase().match(/[a-z]+/g) ?? [];

/**
 * @returns {{documents: {_id: string, title: string, text: string}[], queries: {_id: string, text: string}[], judgements: [string, string, number][]}}
 */
export function identifiers() {
  const all = synsets().filter(({ gloss }) => gloss.length < 400);
  const people = all.filter((synset) => surnameOf(synset) !== undefined);
  const drawn = sample(
    all.filter((synset) => surnameOf(synset) === undefined),
    DOCUMENTS - 5 * QUESTIONS,
  );
  const named = sample(people, 2 * QUESTIONS);
  const documents = [...drawn, ...named].map((synset) => ({
    _id: synset.id,
    title: synset.words.join(', '),
    text: synset.gloss,
  }));
  const parts = coded();
  documents.push(...parts.documents);
  const holding = new Map();
  for (const { title, text } of documents) {
    for (const word of new Set(words(`${title} ${text}`))) holding.set(word, (holding.get(word) ?? 0) + 1);
  }
  const isTelling = (word) => word.length > 3 && holding.get(word) <= MOST_HOLDING;

  const asked = [
    ...parts.codes.map((code) => ({ kind: 'code', text: code, has: (text) => text.includes(code) })),
    ...sample([...new Set(named.map(surnameOf))], QUESTIONS).map((name) => ({
      kind: 'surname',
      text: name,
      has: (text) => new RegExp(`\\b${name}\\b`).test(text),
    })),
    ...sample(drawn, drawn.length)
      .map(({ gloss }) => phraseOf(gloss, isTelling))
      .filter((phrase) => phrase !== undefined)
      .slice(0, QUESTIONS)
      .map((phrase) => ({ kind: 'phrase', text: `"${phrase}"`, has: (text) => text.toLowerCase().includes(phrase) })),
    ...sample(drawn, drawn.length)
      .map(({ gloss }) => sample([...new Set(words(gloss).filter(isTelling))], 2))
      .filter((pair) => pair.length === 2)
      .slice(0, QUESTIONS)
      .map((pair) => ({
        kind: 'pair',
        text: pair.join(' '),
        has: (text) => pair.every((word) => words(text).includes(word)),
      })),
  ];
  const queries = asked.map(({ kind, text }, number) => ({ _id: `${kind}-${number}`, text }));
  const judgements = asked.flatMap(({ has }, number) =>
    documents.filter(({ title, text }) => has(`${title} ${text}`)).map(({ _id }) => [queries[number]._id, _id, 1]),
  );
  return { documents, queries, judgements };
}

/** The last word of the longest name of somebody; `undefined` for what is not a person with a name of several words. */
function surnameOf({ words: names, gloss }) {
  if (!/\(\d{4}-\d{4}\)|\(born in \d{4}\)/.test(gloss)) return undefined;
  const longest = names.reduce((a, b) => (b.length > a.length ? b : a));
  return /^(?:[A-Z][a-z]+ )+([A-Z][a-z]+)$/.exec(longest)?.[1];
}

/** Words of a text that follow one another, of which the first and the last are rare. */
function phraseOf(text, isTelling) {
  const found = [...text.toLowerCase().matchAll(/[a-z]+(?: [a-z]+)+/g)].flatMap(([run]) => {
    const all = run.split(' ');
    return all.slice(PHRASE - 1).map((_, at) => all.slice(at, at + PHRASE));
  });
  return one(found.filter((phrase) => isTelling(phrase[0]) && isTelling(phrase.at(-1))))?.join(' ');
}

/** Notes on spare parts. Each code has two neighbours, which differ in a letter or a digit, so that nothing but the whole code tells them apart. */
function coded() {
  const things = ['pump', 'valve', 'bearing', 'gasket', 'filter', 'hinge', 'bracket', 'sensor', 'relay', 'nozzle'];
  const uses = ['the cooling circuit', 'the rear door', 'the intake', 'older models', 'the conveyor', 'outdoor use'];
  const documents = [];
  const codes = [];
  for (let number = 0; number < QUESTIONS; number += 1) {
    const [first, second, last, other] = sample([...LETTERS], 4);
    const digits = one(Array.from({ length: 9000 }, (_, at) => 1000 + at));
    const near = digits === 9999 ? 1000 : digits + 1;
    const three = [
      `${first}${second}-${digits}-${last}`,
      `${first}${second}-${digits}-${other}`,
      `${first}${second}-${near}-${last}`,
    ];
    codes.push(three[0]);
    for (const code of three) {
      documents.push({
        _id: `part-${documents.length}`,
        title: `Spare ${one(things)}`,
        text: `Order number ${code}, made for ${one(uses)}. Replaces the ${one(things)} of the former series.`,
      });
    }
  }
  return { documents: sample(documents, documents.length), codes };
}
