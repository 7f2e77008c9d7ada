// Which fields `sparrow import` makes to be searched by meaning, against a real server.
import { describe, expect, it } from 'vitest';

import { importing, lines } from './importing.js';
import { sparrow } from './support.js';

const { server, run, imported, file, count } = await importing();

describe('a file that is imported', () => {
  it('is found by meaning where that is asked for', async () => {
    const path = await file(
      'animals.jsonl',
      lines([{ text: 'Blue whales are large animals.' }, { text: 'Yeast makes gas.' }]),
    );
    await imported(path, '--semantic', 'text');
    const found = async (query: object) =>
      (await server.request('POST', '/animals/_search', { query })).body.hits.hits.map((hit: any) => hit._source.text);
    expect(await found({ semantic: { field: 'meaning', query: 'biggest creature' } })).toHaveProperty(
      '0',
      expect.stringContaining('whales'),
    );
    expect(await found({ match: { text: 'yeast' } })).toEqual([expect.stringContaining('Yeast')]);
    // An index that is there gets the field.
    const more = await file('more.jsonl', lines([{ note: 'Lava is hot rock.' }]));
    await imported(more, '--index', 'animals', '--semantic', 'note');
    const query = { semantic: { field: 'meaning', query: 'lava' } };
    const { body } = await server.request('POST', '/animals/_search', { query });
    expect(body.hits.hits[0]._source).toEqual({ note: 'Lava is hot rock.' });
  });

  it('is found by meaning in what looks like texts, unless that is not wanted', async () => {
    const rows = [
      { title: 'Blue whales', about: 'They are the largest animals that ever lived.', kind: 'animal' },
      { title: 'Lava flows', about: 'It is rock so hot that it flows downhill.', kind: 'stone' },
    ];
    const path = await file('chosen.jsonl', lines(rows));
    expect(await imported(path)).toMatchObject({ semantic: ['title', 'about'] });
    const query = { semantic: { field: 'meaning', query: 'biggest creature' } };
    const { body } = await server.request('POST', '/chosen/_search', { query });
    expect(body.hits.hits[0]._source).toEqual(rows[0]);
    // From standard input, too; an index that is there gets no fields that nobody asked for.
    const args = ['import', '-', '--format', 'jsonl', '--url', server.url, '--data', server.data, '--json'];
    const read = async (index: string) =>
      JSON.parse((await sparrow([...args, '--index', index], {}, lines(rows))).stdout)[0].semantic;
    expect([await read('chosen-piped'), await read('chosen-piped')]).toEqual([['title', 'about'], []]);
    expect(await imported(path, '--index', 'unchosen', '--no-semantic')).toMatchObject({ semantic: [], written: 2 });
    const mapped = await server.request('GET', '/unchosen/_mapping');
    const properties = Object.keys(mapped.body.unchosen.mappings.properties);
    expect(properties).toEqual(['about', 'kind', 'title']);
  });

  it('is not loaded where a column that meaning is searched in is not there', async () => {
    const path = await file('typo.csv', 'id,text\n1,Blue whales are large animals.\n');
    const { code, stderr } = await run(path, '--semantic', 'body');
    expect([code, stderr]).toEqual([
      1,
      `sparrow: ${path}: there is no column [body] for --semantic; the columns are id, text\n`,
    ]);
    expect((await server.request('HEAD', '/typo')).status).toBe(404);
  });

  it('is not loaded where none of its first documents has a field that meaning is searched in', async () => {
    const rows = lines([
      { _id: 1, title: 'Whales', meta: { note: 'large' } },
      { _id: 2, title: 'Yeast', tags: ['small'] },
    ]);
    const path = await file('typo.jsonl', rows);
    const none = 'no document has the field [titel] for --semantic; the fields are title, meta.note, tags';
    const read = await run(path, '--semantic', 'title', 'titel');
    expect([read.code, read.stderr]).toEqual([1, `sparrow: ${path}: ${none}\n`]);
    const late = await file('late.jsonl', `${'{"a":1}\n'.repeat(1000)}{"tags":"x"}\n`);
    const first = await run(late, '--semantic', 'tags');
    expect(first.stderr).toContain(
      'none of the first 1,000 documents has the field [tags] for --semantic; the fields are a\n',
    );
    const where = ['--index', 'typo', '--url', server.url, '--data', server.data];
    const piped = await sparrow(['import', '-', '--format', 'jsonl', ...where, '--semantic', 'titel'], {}, rows);
    expect([piped.code, piped.stderr]).toEqual([1, `sparrow: ${none}\n`]);
    const columns = await sparrow(['import', '-', '--format', 'csv', ...where, '--semantic', 'b'], {}, 'id,a\n1,x\n');
    expect(columns.stderr).toBe('sparrow: there is no column [b] for --semantic; the columns are id, a\n');
    expect((await server.request('HEAD', '/typo')).status).toBe(404);
    // The records that were read to see their fields are loaded, too.
    const good = await sparrow(['import', '-', '--format', 'jsonl', ...where, '--semantic', 'tags'], {}, rows);
    expect([good.code, good.stderr]).toEqual([0, '']);
    expect(await count('typo')).toBe(2);
    expect(await imported(path, '--index', 'nested', '--semantic', 'meta.note')).toMatchObject({ written: 2 });
  });

  it('says of texts in another language that their meaning is not searched', async () => {
    const german = 'text\n"Der Hund ist nicht im Haus, und das ist gut für die Katze."\n';
    const { notes } = await imported(await file('german.csv', german));
    expect(notes).toEqual([expect.stringMatching(/^these texts look like German, and the models .* English only/)]);
    expect((await imported(await file('german2.csv', german), '--no-semantic')).notes).toEqual([]);
  });

  it('says of a large document that it takes its time', async () => {
    const large = { text: `A few words and then a long one: ${'x'.repeat(300_000)}` };
    const path = await file('large.jsonl', lines([{ text: 'A few words and no more.' }, large, large]));
    const { code, stderr } = await run(path);
    expect([code, stderr]).toEqual([
      0,
      `${path}, line 2: a document of 300 kB, which may take minutes to encode: split into parts of about a page, a search would find the part that answers\n`,
    ]);
    expect((await run(path, '--index', 'large-words', '--no-semantic')).stderr).toBe('');
  });

  it('says how many of its texts were truncated', async () => {
    const mappings = {
      properties: { text: { type: 'semantic_text', chunking_settings: { strategy: 'none' } } },
    };
    await server.request('PUT', '/truncated', { mappings });
    const path = await file('truncated.jsonl', lines([{ text: 'whale '.repeat(1000) }, { text: 'yeast' }]));
    const { code, stdout } = await run(path, '--index', 'truncated');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/, 1 text beyond the model's limit was truncated\n$/)]);
  });

  it('has sparse and dense vectors of those fields, or one kind where that is asked for', async () => {
    const path = await file('kinds.jsonl', lines([{ text: 'Blue whales are large animals.' }]));
    const endpoints = async (index: string, ...args: string[]) => {
      await imported(path, '--index', index, '--semantic', 'text', ...args);
      const { mappings } = (await server.request('GET', `/${index}/_mapping`)).body[index];
      const { inference_id: id, model_settings: settings } = mappings.properties.meaning;
      return [id, settings.task_type];
    };
    expect(await endpoints('kinds')).toEqual(['.hybrid', 'hybrid_embedding']);
    expect(await endpoints('kinds-sparse', '--vectors', 'sparse')).toEqual([
      '.elser-2-elasticsearch',
      'sparse_embedding',
    ]);
    expect(await endpoints('kinds-dense', '--vectors', 'dense')).toEqual([
      '.all-minilm-l6-v2-elasticsearch',
      'text_embedding',
    ]);
    // What an index holds stays, unless another kind is asked for by its name.
    expect(await endpoints('kinds-sparse', '--restart')).toEqual(['.elser-2-elasticsearch', 'sparse_embedding']);
    for (const more of [[], ['--restart']]) {
      const dense = ['--index', 'kinds-sparse', '--semantic', 'text', '--vectors', 'dense', ...more];
      const { code, stderr } = await run(path, ...dense);
      const remedy =
        '`--vectors dense` cannot replace: leave it out to keep them, choose another index with --index, or change the model of the field with `POST /kinds-sparse/_ext/model/_change`';
      expect([code, stderr]).toEqual([
        1,
        `sparrow: ${path}: the documents in [kinds-sparse] have sparse vectors in [meaning], which ${remedy}\n`,
      ]);
    }
    // The kind that is there may be named, also where an endpoint of another name makes it.
    expect(await endpoints('kinds-sparse', '--vectors', 'sparse', '--restart')).toEqual([
      '.elser-2-elasticsearch',
      'sparse_embedding',
    ]);
    // Each kind is searched as it can be.
    const search = (index: string, by: string) =>
      sparrow(['search', 'biggest creature', '--index', index, '--by', by, '--url', server.url, '--data', server.data]);
    for (const [index, ways] of [
      ['kinds', ['hybrid', 'meaning', 'sparse', 'dense']],
      ['kinds-sparse', ['hybrid', 'meaning', 'sparse']],
      ['kinds-dense', ['hybrid', 'meaning', 'dense']],
      ['kinds,kinds-sparse,kinds-dense', ['hybrid', 'meaning']],
    ] as const) {
      for (const by of ways) {
        const { code, stdout, stderr } = await search(index, by);
        expect([code, stderr], `${index} by ${by}`).toEqual([0, '']);
        expect(stdout, `${index} by ${by}`).toContain('Blue whales');
        // All documents are near in some way: how many were looked at says nothing.
        expect(stdout, `${index} by ${by}`).toMatch(
          by === 'dense'
            ? /\nthe nearest document, \d+ ms\n$/
            : by === 'sparse'
              ? /\n\d+ found, \d+ ms\n$/
              : /\n(?:\d+ found|the (?:\d+ )?best documents?), \d+ ms\n$/,
        );
      }
    }
    expect(await search('kinds-sparse', 'dense')).toMatchObject({
      code: 1,
      stderr: 'sparrow: [kinds-sparse] has no semantic_text field of dense vectors to look in\n',
    });
    expect(await search('kinds-dense', 'sparse')).toMatchObject({
      code: 1,
      stderr: 'sparrow: [kinds-dense] has no sparse_vector field or semantic_text of sparse vectors to look in\n',
    });
  });
});
