// The one maker of documents from plain text and Markdown, for `sparrow import` and the console. It has no imports, as it runs in
// browsers too.

/** Some paragraphs of a text, as a document. */
export interface TextPart {
  /** The last Markdown heading before them. */
  readonly title?: string;
  /** The paragraphs, with the heading before them, so that their vectors know it. */
  readonly text: string;
  /** Its place in the text, from 1. */
  readonly part: number;
  /** The file that the text is from, where it has a name. */
  readonly file?: string;
}

/**
 * The field of a part that is searched by meaning. The heading is in it: a vector of the heading alone, repeated by each part below it,
 * would be as near to many questions as what answers them.
 */
export const MEANING_OF_PART = 'text';

/** A part, and the line in which it begins, from 1. */
export interface PlacedPart {
  readonly document: TextPart;
  readonly line: number;
}

interface Paragraph {
  readonly text: string;
  readonly words: number;
  /** The line in which it begins, from 1. */
  readonly line: number;
}

/** Most words of paragraphs that are put together; a longer paragraph is a part by itself. */
const WORDS_OF_PART = 200;
/** Most words of a paragraph that goes with what follows it, as plain texts write their headings, and how many in a row do. */
const WORDS_OF_LINE = 10;
const MOST_LINES = 3;
const HEADING = /^\s*#{1,6}\s+(.+)/;
const CODE = /^\s*(?:```|~~~)/;

/** The line above and below front matter, a line of it, and its title: YAML that generators of sites write above a text. */
const FENCE = /^---\s*$/;
const YAML = /^(?:\s|#|- |[\w-]+:(?:\s|$)|$)/;
const TITLE = /^title:\s+(["']?)(.+?)\1\s*$/;
const MOST_FRONT_LINES = 200;

/** Fewest characters of the lines, but for the last, of a paragraph that was broken into lines to fit a page; verses are shorter. */
const WRAPPED = 50;
/** The beginning of a line that means something: of lists, quotes, tables, headings and code, or indented. */
const STRUCTURE = /^(?:\s{2}|\t|\s*(?:[-*+>|#]|\d+[.)]\s|```|~~~))/;

/** Whether a paragraph is one text whose lines only fit a page: a passage of it must not end where a line does. */
function isWrapped(lines: readonly string[]): boolean {
  return lines.slice(0, -1).every((line) => line.length >= WRAPPED) && !lines.some((line) => STRUCTURE.test(line));
}

/** Paragraphs of a text, small ones together, given line by line. */
export class TextParts {
  #title = '';
  /** The paragraphs of the part that is open. */
  #paragraphs: Paragraph[] = [];
  /** The lines of the paragraph that is open. */
  #lines: string[] = [];
  #lineOfParagraph = 0;
  #isCode = false;
  #line = 0;
  #parts = 0;
  /** Characters of the lines of the paragraph that is open. */
  #characters = 0;
  /** The lines from the first one that may be front matter; undefined from where they cannot be. */
  #front: string[] | undefined = [];

  /** Whether nothing is Markdown: a line that begins with `#` is no heading, as plain texts show programs without a fence around them. */
  readonly #isPlain: boolean;

  /** @param file what the parts say that they are from */
  constructor(readonly file?: string) {
    this.#isPlain = /\.(?:txt|text)(?:\.gz)?$/i.test(file ?? '');
    if (this.#isPlain) this.#front = undefined;
  }

  /** Characters that are kept until a part ends. */
  get open(): number {
    const front = this.#front?.reduce((sum, line) => sum + line.length, 0) ?? 0;
    return this.#paragraphs.reduce((sum, { text }) => sum + text.length, this.#characters + front);
  }

  /** Takes the next line; gives the parts that end with it. */
  add(line: string): PlacedPart[] {
    if (this.#front === undefined) return this.#read(line);
    const place = this.#front.push(line);
    if (place === 1 ? FENCE.test(line) : YAML.test(line) && place <= MOST_FRONT_LINES) return [];
    if (place === 1 || !FENCE.test(line)) return this.#readFront();
    const titles = this.#front.flatMap((one) => TITLE.exec(one)?.[2] ?? []);
    this.#title = titles[0] ?? '';
    this.#line = place;
    this.#front = undefined;
    return [];
  }

  /** Reads as text what looked like front matter. */
  #readFront(): PlacedPart[] {
    const lines = this.#front ?? [];
    this.#front = undefined;
    return lines.flatMap((line) => this.#read(line));
  }

  #read(line: string): PlacedPart[] {
    this.#line += 1;
    if (line.trim() === '') return this.#endParagraph();
    if (CODE.test(line)) this.#isCode = !this.#isCode;
    const heading = this.#lines.length === 0 && !this.#isCode && !this.#isPlain ? HEADING.exec(line) : null;
    if (heading !== null) {
      const ended = this.#endPart();
      // A heading may be closed by the signs that open it.
      this.#title = (heading[1] ?? '').replace(/\s+#+\s*$/, '').trim();
      return ended;
    }
    if (this.#lines.length === 0) this.#lineOfParagraph = this.#line;
    this.#lines.push(line.replace(/\r$/, ''));
    this.#characters += line.length;
    return [];
  }

  /** Gives what is open at the end of the text. */
  end(): PlacedPart[] {
    return [...this.#readFront(), ...this.#endParagraph(), ...this.#endPart()];
  }

  #endParagraph(): PlacedPart[] {
    const isProse = !this.#isCode && isWrapped(this.#lines);
    const text = this.#lines.join(isProse ? ' ' : '\n').trim();
    this.#lines = [];
    this.#characters = 0;
    if (text === '') return [];
    const paragraph = { text, words: text.split(/\s+/).length, line: this.#lineOfParagraph };
    const words = this.#paragraphs.reduce((sum, one) => sum + one.words, paragraph.words);
    const ended = words > WORDS_OF_PART ? this.#endPart(this.#linesAtEnd()) : [];
    this.#paragraphs.push(paragraph);
    return ended;
  }

  /** How many paragraphs at the end of the open part belong to what follows. */
  #linesAtEnd(): number {
    const longer = this.#paragraphs.slice(-MOST_LINES).findLastIndex(({ words }) => words > WORDS_OF_LINE);
    return Math.min(MOST_LINES, this.#paragraphs.length) - 1 - longer;
  }

  /** Ends the open part, but for so many paragraphs at its end, which begin the next one. */
  #endPart(kept = 0): PlacedPart[] {
    const paragraphs = this.#paragraphs.slice(0, this.#paragraphs.length - kept);
    const [first] = paragraphs;
    if (first === undefined) return [];
    const title = this.#title === '' ? {} : { title: this.#title };
    const texts = [...(this.#title === '' ? [] : [this.#title]), ...paragraphs.map(({ text }) => text)];
    const file = this.file === undefined ? {} : { file: this.file };
    const document = { ...title, text: texts.join('\n\n'), part: (this.#parts += 1), ...file };
    this.#paragraphs = this.#paragraphs.slice(paragraphs.length);
    return [{ document, line: first.line }];
  }
}
