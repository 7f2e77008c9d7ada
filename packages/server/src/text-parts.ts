// The one maker of documents from plain text and Markdown, for `sparrow import` and the console. It has no imports, as it runs in
// browsers too.

/** Some paragraphs of a text, as a document. */
export interface TextPart {
  /** The last Markdown heading before them. */
  readonly title?: string;
  readonly text: string;
  /** Its place in the text, from 1. */
  readonly part: number;
}

/** A part, and the line in which it begins, from 1. */
export interface PlacedPart {
  readonly document: TextPart;
  readonly line: number;
}

/** Most words of paragraphs that are put together; a longer paragraph is a part by itself. */
const WORDS_OF_PART = 200;
const HEADING = /^\s*#{1,6}\s+(.+)/;

/** Paragraphs of a text, small ones together, given line by line. */
export class TextParts {
  #title = '';
  /** The paragraphs of the part that is open, with their words. */
  #paragraphs: string[] = [];
  #words = 0;
  #begin = 0;
  /** The lines of the paragraph that is open. */
  #lines: string[] = [];
  #lineOfParagraph = 0;
  #line = 0;
  #parts = 0;
  /** Characters of what is open. */
  #open = 0;

  /** Characters that are kept until a part ends. */
  get open(): number {
    return this.#open;
  }

  /** Takes the next line; gives the parts that end with it. */
  add(line: string): PlacedPart[] {
    this.#line += 1;
    if (line.trim() === '') return this.#endParagraph();
    const heading = this.#lines.length === 0 ? HEADING.exec(line) : null;
    if (heading !== null) {
      const ended = this.#endPart();
      this.#title = heading[1]?.trim() ?? '';
      return ended;
    }
    if (this.#lines.length === 0) this.#lineOfParagraph = this.#line;
    this.#lines.push(line.replace(/\r$/, ''));
    this.#open += line.length;
    return [];
  }

  /** Gives what is open at the end of the text. */
  end(): PlacedPart[] {
    return [...this.#endParagraph(), ...this.#endPart()];
  }

  #endParagraph(): PlacedPart[] {
    const paragraph = this.#lines.join('\n').trim();
    this.#lines = [];
    if (paragraph === '') return [];
    const words = paragraph.split(/\s+/).length;
    const ended = this.#words + words > WORDS_OF_PART ? this.#endPart() : [];
    if (this.#paragraphs.length === 0) this.#begin = this.#lineOfParagraph;
    this.#paragraphs.push(paragraph);
    this.#words += words;
    return ended;
  }

  #endPart(): PlacedPart[] {
    if (this.#paragraphs.length === 0) return [];
    const title = this.#title === '' ? {} : { title: this.#title };
    const document = { ...title, text: this.#paragraphs.join('\n\n'), part: (this.#parts += 1) };
    this.#paragraphs = [];
    this.#words = 0;
    this.#open = 0;
    return [{ document, line: this.#begin }];
  }
}
