#!/usr/bin/env node
// Answers a question from a few texts: the engine finds the passages, and the model of the AI SDK makes the answer.
import { readFileSync, readdirSync } from 'node:fs';

import { Sparrow } from '@sparrow-search/engine';

import { quotingModel } from './quoting-model.mjs';
import { answer } from './retrieval.mjs';

const question = process.argv.slice(2).join(' ').trim();
if (question === '') {
  console.error('usage: node examples/ai-sdk/ask.mjs QUESTION');
  process.exit(2);
}

// Without a directory, the index is gone when the program ends: give one to keep it.
const sparrow = await Sparrow.open({ data: process.env.DATA });
try {
  const index = sparrow.index('texts');
  const semantic = { type: 'semantic_text', inference_id: '.hybrid' };
  const properties = { title: { type: 'text' }, text: { type: 'text', fields: { semantic } } };
  if (await index.ensure({ mappings: { properties } })) await index.bulk(sections(), { refresh: true });
  const { text, passages } = await answer(quotingModel(), index, question);
  console.log(`${text}\n\nSeen: ${passages.map(({ source }) => source).join('; ')}`);
} finally {
  await sparrow.close();
}

/** The texts of the example beside this one, a document for each heading. */
function sections() {
  const folder = new URL('../rag/texts/', import.meta.url);
  return readdirSync(folder).flatMap((name) =>
    readFileSync(new URL(name, folder), 'utf8')
      .split(/^(?=#{1,6} )/m)
      .map((part) => /^#{1,6} +(.+)\n([^]*)$/.exec(part))
      .filter((part) => part !== null && part[2].trim() !== '')
      .map(([, heading, text]) => ({ title: `${name}, ${heading.trim()}`, text: text.trim() })),
  );
}
