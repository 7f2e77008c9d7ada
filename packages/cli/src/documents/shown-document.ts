// A document as people want to see it: a title and a text, not an id and a list of fields. For the command line and the console; it has no
// imports, as it runs in browsers too.

export type Source = Readonly<Record<string, unknown>>;

export interface Shown {
  readonly title: string;
  /** Name of the field that the title comes from, if it is not made of the text. */
  readonly titleField: string | undefined;
  readonly text: string;
  readonly textField: string | undefined;
  /** The other values, as they are. */
  readonly rest: readonly (readonly [string, unknown])[];
}

const TITLES = ['title', 'name', 'headline', 'subject', 'heading', 'label', 'question', 'words', 'word', 'term'];
const TEXTS = ['text', 'content', 'body', 'description', 'abstract', 'summary', 'gloss', 'passage', 'plot', 'answer'];
/** Longest value that is taken for a title. */
const LONGEST_TITLE = 160;
const MADE_TITLE = 70;
/** Longest value of a list that is one of several words in a line; longer ones are paragraphs. */
const LONGEST_ITEM = 30;
/** Addresses, numbers and what programs make up: no title for people. */
const NO_TITLE = /^(?:https?:\S*|[\d\W]*|[\da-f-]{16,})$/i;

/** Longest value of a title that no name of a field says to be one, and smallest share of documents that have one of their own. */
const LONGEST_UNNAMED = 80;
const MOST_SHARED = 0.9;
const DATE = /^\d{4}-\d{2}-\d{2}/;

/**
 * The field that tells documents apart, for those without one that is called a title: the first whose short texts are nearly all different.
 * Undefined if no field is like that, or if there is only one document to judge by.
 */
export function titleFieldOf(sources: readonly Source[]): string | undefined {
  const values = new Map<string, string[]>();
  for (const source of sources) {
    for (const [name, value] of flat(source)) {
      if (typeof value === 'string') values.set(name, [...(values.get(name) ?? []), value]);
    }
  }
  const wanted = Math.max(2, sources.length * MOST_SHARED);
  const isTitle = (text: string): boolean =>
    text.length <= LONGEST_UNNAMED && !text.includes('\n') && !NO_TITLE.test(text) && !DATE.test(text);
  return [...values].find(([, texts]) => new Set(texts).size >= wanted && texts.every(isTitle))?.[0];
}

/**
 * Picks what is the title of a document and what its text.
 *
 * @param titleField what {@link titleFieldOf} says of the documents beside this one
 */
export function shown(id: string, source: Source, hidden: readonly string[] = [], titleField?: string): Shown {
  const values = flat(source).filter(([name]) => !hidden.includes(name));
  const strings = values.flatMap(([name, value]): [string, string][] => {
    const text = textOf(value);
    return text === undefined ? [] : [[name, text]];
  });
  const named = (
    names: readonly string[],
    fits: (text: string) => boolean,
    called: (field: string) => string = last,
  ): [string, string] | undefined =>
    names
      .map((name) => strings.find(([field, text]) => called(field) === name && fits(text)))
      .find((found) => found !== undefined);
  const isShort = (text: string): boolean => text.length > 0 && text.length <= LONGEST_TITLE;
  const hasText = strings.some(([, text]) => text.includes(' '));
  // Where there is nothing to read, the first value says more than an id.
  const apart = strings.find(([field, text]) => field === titleField && isShort(text));
  // A text that is all there is to read is no title of itself.
  const isAbove =
    apart !== undefined && strings.some(([, text]) => text.length > apart[1].length && text.includes(' '));
  const title =
    named(TITLES, isShort, (field) => field.toLowerCase()) ??
    (isAbove ? apart : undefined) ??
    // The name of what a document holds, as of its author, says less.
    named(TITLES, isShort) ??
    (hasText ? undefined : strings.find(([, text]) => isShort(text) && !NO_TITLE.test(text)));
  const longest = strings.filter(([name]) => name !== title?.[0]).sort(([, a], [, b]) => b.length - a.length)[0];
  const text =
    named(TEXTS, (value) => value.length > 0 && value !== title?.[1]) ??
    (longest?.[1].includes(' ') === true ? longest : undefined);
  const used = [title?.[0], text?.[0]];
  return {
    title: title?.[1] ?? (text === undefined ? id : beginning(text[1])),
    titleField: title?.[0],
    text: behindTitle(text?.[1] ?? '', title?.[1]),
    textField: text?.[0],
    rest: values.filter(([name]) => !used.includes(name)),
  };
}

/** A text without the title that it begins with, as parts of a file do: it stands above it. */
function behindTitle(text: string, title: string | undefined): string {
  return title !== undefined && text.startsWith(`${title}\n`) ? text.slice(title.length).trimStart() : text;
}

/** Values with full names; lists stay together. */
export function flat(source: Source, prefix = ''): [string, unknown][] {
  return Object.entries(source).flatMap(([name, value]): [string, unknown][] =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? flat(value as Source, `${prefix}${name}.`)
      : [[prefix + name, value]],
  );
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string'))
    return value.join(value.some((one) => one.length > LONGEST_ITEM) ? '\n\n' : ', ');
  return undefined;
}

function last(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/** The first line, as far as a title goes: what follows it is no part of it. */
function beginning(text: string): string {
  const line = text.trimStart().split('\n', 1)[0]?.trimEnd() ?? '';
  if (line.length <= MADE_TITLE) return line;
  const cut = line.slice(0, MADE_TITLE);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), 20))} …`;
}
