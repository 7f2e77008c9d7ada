import { any, bool, either, list, object, open, ref, text } from './schema.js';

const source = either(text(), open());
const request = {
  id: text('a stored script'),
  source,
  params: open('values by their names'),
  explain: any('whether hits say why they have their scores'),
  profile: any('whether the search says what took how long'),
};
const acknowledged = ref('Acknowledged');

export const SEARCH_TEMPLATE_OPERATIONS = {
  search_template: {
    about: 'Fills in a search template, and searches.',
    request: object(request),
    answer: ref('SearchAnswer'),
  },
  msearch_template: {
    about:
      'Fills in several search templates, and searches: lines of headers, each with its template on the next line.',
    request: open('A header, or a template.'),
    answer: ref('MultiSearchAnswer'),
  },
  render_template: {
    about: 'Fills in a search template, and shows what comes of it.',
    request: object(request),
    answer: object({ template_output: open() }, ['template_output']),
  },
  put_script: {
    about: 'Keeps a search template by its id.',
    request: object({ script: object({ lang: text('`mustache`'), source, options: open() }, ['lang', 'source']) }, [
      'script',
    ]),
    answer: acknowledged,
  },
  script_contexts: {
    about: 'Lists where scripts can stand.',
    answer: object({ contexts: list(object({ name: text(), methods: list(open()) }, ['name', 'methods'])) }, [
      'contexts',
    ]),
  },
  script_languages: {
    about: 'Lists the languages of scripts, and where each can stand.',
    answer: object(
      {
        types_allowed: list(text()),
        language_contexts: list(object({ language: text(), contexts: list(text()) }, ['language', 'contexts'])),
      },
      ['types_allowed', 'language_contexts'],
    ),
  },
  get_script: {
    about: 'Shows a stored search template.',
    answer: object({ _id: text(), found: bool(), script: object({ lang: text(), source: text(), options: open() }) }, [
      '_id',
      'found',
    ]),
  },
  delete_script: { about: 'Deletes a stored search template.', answer: acknowledged },
} as const;
