// A stand-in for a language model, so that the example runs without one: it searches for the question as it stands, and quotes the
// first passage that it gets. In its place belongs a model of yours, such as `openai('…')` of `@ai-sdk/openai`.
import { MockLanguageModelV3 } from 'ai/test';

const tokens = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0, text: 0, reasoning: 0 };
const said = (content, unified) => ({
  content: [content],
  finishReason: { unified, raw: undefined },
  usage: { inputTokens: tokens, outputTokens: tokens },
  warnings: [],
});

export function quotingModel() {
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const results = prompt.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
      if (results.length === 0) {
        const [question] = prompt.findLast(({ role }) => role === 'user').content;
        const input = JSON.stringify({ question: question.text });
        return said({ type: 'tool-call', toolCallId: 'call-1', toolName: 'search', input }, 'tool-calls');
      }
      const [first] = results[0].output.value;
      const text = first === undefined ? 'The texts do not say.' : `${first.passage} [${first.source}]`;
      return said({ type: 'text', text }, 'stop');
    },
  });
}
