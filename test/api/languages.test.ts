// Texts in other languages than English: a sparse model warns of them, and the multilingual model of a package finds them. The files of
// that model are made by tools/models/build_multilingual.py and not kept here, so its tests run only where somebody has made them.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const MODEL = fileURLToPath(new URL('../../packages/model-multilingual-e5-small', import.meta.url));
const ENDPOINT = '.multilingual-e5-small-elasticsearch';

/** A question and a text that answers it, with hardly a word in common. */
const TEXTS: Record<string, readonly [question: string, text: string]> = {
  german: ['Wo kann ich Geld abheben?', 'Der nächste Bankautomat steht am Bahnhof.'],
  french: ['Comment soigner un rhume ?', 'Contre le nez bouché, reposez-vous et buvez des tisanes chaudes.'],
  spanish: ['¿Qué animal es el más grande del mundo?', 'La ballena azul llega a pesar ciento cincuenta toneladas.'],
  italian: ['Come si prepara la pasta?', 'Far bollire gli spaghetti in acqua salata per dieci minuti.'],
  portuguese: ['Onde posso aprender a nadar?', 'A piscina municipal tem aulas de natação para adultos.'],
  dutch: ['Hoe laat vertrekt de trein?', 'Het spoor heeft op zondag een andere dienstregeling.'],
  russian: ['Как вырастить помидоры?', 'Рассаду томатов сажают в теплицу в мае.'],
  chinese: ['怎样学好外语？', '每天背英语单词并和外国人聊天。'],
  japanese: ['富士山に登りたい', '山頂までの登山道は七月から九月まで開いています。'],
  arabic: ['كيف أحمي حاسوبي من الفيروسات؟', 'ثبت برنامجا للحماية وحدث نظام التشغيل باستمرار.'],
  hindi: ['बारिश कब होगी?', 'मौसम विभाग के अनुसार मानसून जून में आएगा।'],
};

let server: RunningServer;
const done = async (method: string, path: string, body?: unknown) => {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer;
};

beforeAll(async () => {
  server = await startServer({ args: existsSync(`${MODEL}/model.safetensors`) ? ['--models', MODEL] : [] });
});
afterAll(() => server.stop());

describe('a sparse model of English', () => {
  const content = { type: 'text', fields: { meaning: { type: 'semantic_text' } } };
  const warning = async (query: unknown, path = '/notes/_search') =>
    [(await done('POST', path, query)).headers['warning'] ?? ''].flat().join(', ');
  const semantic = (query: string) => ({ query: { semantic: { field: 'content.meaning', query } } });

  it('warns of a search in another language, and answers it', async () => {
    await done('PUT', '/notes', { mappings: { properties: { content } } });
    await done('PUT', '/notes/_doc/1?refresh=true', { content: 'Muscles recover with rest.' });
    for (const question of ['Wie kann ich nach dem Sport die Schmerzen lindern?', '運動の後の痛み']) {
      const said = await warning(semantic(question));
      expect(said, question).toContain(
        'the model [.sparse_encoder_model_2] reads only English, and the text of this search',
      );
    }
    expect(await warning({ query: { match: { content: 'Wie kann ich nach dem Sport die Schmerzen lindern?' } } })).toBe(
      '',
    );
    for (const question of ['how do I ease the pain after sports', 'Schadenfreude']) {
      expect(await warning(semantic(question)), question).toBe('');
    }
  });
});

describe.runIf(existsSync(`${MODEL}/model.safetensors`))('the multilingual model', () => {
  it('finds the text that answers a question, among those of eleven languages', async () => {
    const content = { type: 'semantic_text', inference_id: ENDPOINT };
    await done('PUT', '/answers', { mappings: { properties: { content } } });
    for (const [language, [, text]] of Object.entries(TEXTS))
      await done('PUT', `/answers/_doc/${language}`, { content: text });
    await done('POST', '/answers/_refresh');
    for (const [language, [query]] of Object.entries(TEXTS)) {
      const found = await done('POST', '/answers/_search', { query: { semantic: { field: 'content', query } } });
      expect(found.body.hits.hits[0]._id, query).toBe(language);
      expect(found.headers['warning'], query).toBeUndefined();
    }
  });

  it('finds it by a question in another language', async () => {
    const query = 'Where can I get cash?';
    const found = await done('POST', '/answers/_search', { query: { semantic: { field: 'content', query } } });
    expect(found.body.hits.hits[0]._id).toBe('german');
  });

  it('is not listed as one of English', async () => {
    const { body } = await done('GET', '/_ml/trained_models/.multilingual-e5-small');
    expect(body.trained_model_configs[0].description).toBe('Multilingual dense sentence encoder, 384 dimensions');
  });

  it('puts the prefixes of its makers before texts', async () => {
    const vector = async (input: string, input_type: string): Promise<number[]> =>
      (await done('POST', `/_inference/${ENDPOINT}`, { input, input_type })).body.text_embedding[0].embedding;
    expect(await vector('eine Frage', 'search')).not.toEqual(await vector('eine Frage', 'ingest'));
    expect(await vector('eine Frage', 'search')).toHaveLength(384);
  });
});
