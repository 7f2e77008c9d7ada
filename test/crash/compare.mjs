// Holds what the server was found to have against what the model allows, and adopts it where several states were possible.
import { matches, typeOfName } from './documents.mjs';
import { sameState } from './register.mjs';

const show = (state) => (state === null ? 'no document' : JSON.stringify(state));

/** Compares indices, aliases, pipelines and templates. `fail(kind, details)` is told of each difference. */
export function compareCatalogue(model, observed, fail) {
  if (observed.health === 'red') fail('cluster health is red', {});
  for (const index of model.indices.values()) {
    const there = observed.indices.has(index.name);
    if (!index.exists.allows(there)) {
      fail(there ? 'deleted index is back' : 'index lost', { index });
    }
    index.exists.adopt(there);
    if (there) compareIndex(index, observed.indices.get(index.name), fail);
  }
  for (const name of observed.indices.keys()) {
    if (!model.indices.has(name)) fail('index that nobody made', { found: name });
  }
  for (const [name, register] of model.aliases) {
    const found = observed.aliases.get(name) ?? [];
    if (found.length !== 1) fail('alias of not exactly one index', { id: name, found });
    if (found.length > 0 && !register.allows(found[0])) {
      fail('wrong alias', { id: name, expected: register.candidates, found });
    }
    register.adopt(found[0]);
  }
  compareNamed('pipeline', model.pipelines, observed.pipelines, fail);
  compareNamed('template', model.templates, observed.templates, fail);
}

function compareNamed(what, registers, found, fail) {
  for (const [name, register] of registers) {
    const state = found.get(name) ?? null;
    if (!register.allows(state)) fail(`wrong ${what}`, { id: name, expected: register.candidates, found: state });
    register.adopt(state);
  }
  for (const name of found.keys()) if (!registers.has(name)) fail(`${what} that nobody made`, { id: name });
}

function compareIndex(index, observed, fail) {
  if (observed.health === 'red') fail('index is red', { index });
  if (!index.open.allows(observed.open))
    fail('wrong state', { index, expected: index.open.candidates, found: observed.open });
  index.open.adopt(observed.open);
  for (const [name, type] of index.fields) {
    if (observed.fields[name] === undefined) fail('field lost from the mapping', { index, id: name });
    else if (observed.fields[name].type !== type) {
      fail('wrong type in the mapping', { index, id: name, expected: type, found: observed.fields[name].type });
    }
  }
  for (const [name, { type }] of Object.entries(observed.fields)) {
    const wanted = typeOfName(name);
    if (wanted !== undefined && type !== wanted)
      fail('wrong type in the mapping', { index, id: name, expected: wanted, found: type });
    if (wanted !== undefined) index.fields.set(name, type);
  }
  for (const [key, register] of index.settings) {
    const found = observed.settings[`index.${key}`] ?? (key === 'blocks.write' ? 'false' : null);
    if (!register.candidates.some((state) => state === undefined || state === found)) {
      fail('wrong setting', { index, id: key, expected: register.candidates, found });
    }
    register.adopt(found);
  }
}

/**
 * Compares the documents of an index.
 *
 * @returns {{ documents: number, searches: number }} how much was compared
 */
export function compareDocuments(index, observed, fail) {
  const { found, twice, total, count, got, searches } = observed;
  for (const id of twice) fail('document found twice', { index, id });
  for (const [id, register] of index.docs) {
    compareDocument(index, id, register, { inSearch: found.get(id) ?? null, byId: got.get(id) ?? null }, fail);
  }
  for (const [id, state] of found) {
    if (!index.docs.has(id)) fail('document that nobody wrote', { index, id, found: show(state) });
  }
  const expected = [...index.docs.values()].filter(({ latest }) => latest !== null).length;
  if (count !== expected || total !== expected) fail('wrong count', { index, expected, found: { count, total } });
  for (const search of searches) compareSearch(index, search, fail);
  return { documents: index.docs.size, searches: searches.length };
}

function compareDocument(index, id, register, { inSearch, byId }, fail) {
  if (!sameState(inSearch, byId)) {
    fail('search and get differ', { index, id, expected: show(byId), found: show(inSearch) });
  }
  const found = byId ?? inSearch;
  if (!register.allows(found)) {
    const { candidates } = register;
    const lost = found === null;
    const back = found !== null && candidates.every((state) => state === null);
    fail(lost ? 'document lost' : back ? 'deleted document is back' : 'wrong document', {
      index,
      id,
      expected: candidates.map(show),
      found: show(found),
    });
  }
  register.adopt(found);
  if (found === null) return;
  const holder = index.seqNos.get(found.seqNo);
  if (holder !== undefined && holder !== id)
    fail('sequence number given twice', { index, id, found: found.seqNo, before: holder });
  index.seqNos.set(found.seqNo, id);
}

function compareSearch(index, { query, ids, total }, fail) {
  const expected = new Set();
  for (const [id, { latest }] of index.docs) {
    if (latest !== null && matches(query, JSON.parse(latest.source))) expected.add(id);
  }
  const missing = [...expected].filter((id) => !ids.includes(id));
  const wrong = ids.filter((id) => !expected.has(id));
  if (missing.length > 0 || wrong.length > 0 || total !== expected.size || new Set(ids).size !== ids.length) {
    const [id] = [...missing, ...wrong];
    fail('wrong answer of a search', { index, id, query: JSON.stringify(query), missing, wrong, total });
  }
}
