// Retrieval for the AI SDK: a tool that searches an index, and answers that are made with it.
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';

/** Passages that the model gets for a question. */
const PASSAGES = 3;
/** Calls of the model for one answer: a search or two, and the answer. */
const MOST_STEPS = 4;

const RULES = `Answer from what the tool "search" finds, and from nothing else. Name the source of each sentence in brackets.
If the texts do not say it, answer: The texts do not say.`;

/**
 * The tool that a language model calls to search.
 *
 * @param {import('@sparrow-search/engine').Index<{ title: string, text: string }>} index
 */
export function searchTool(index) {
  return tool({
    description: 'Finds the passages that fit a question best, by words and by meaning.',
    inputSchema: z.object({ question: z.string().describe('the question, in plain words') }),
    execute: async ({ question }, { abortSignal }) => {
      const highlight = { fields: { 'text.semantic': { number_of_fragments: 1 } } };
      const request = { size: PASSAGES, retriever: { linear: { query: question } }, highlight };
      const { hits } = await index.search(request, { signal: abortSignal });
      return hits.hits.map(({ _source, highlight: found }) => ({
        source: _source.title,
        passage: found?.['text.semantic']?.[0] ?? _source.text,
      }));
    },
  });
}

/**
 * An answer, and the passages that the model has seen for it.
 *
 * @param {import('ai').LanguageModel} model
 */
export async function answer(model, index, question) {
  const { text, steps } = await generateText({
    model,
    system: RULES,
    prompt: question,
    tools: { search: searchTool(index) },
    stopWhen: stepCountIs(MOST_STEPS),
  });
  const passages = steps.flatMap(({ toolResults }) => toolResults.flatMap(({ output }) => output));
  return { text, passages };
}
