import process from 'node:process';

import { leaves } from '@sparrow-search/endpoints';
import { type Index, SparrowError } from '@sparrow-search/engine';
import { type Command, Option } from 'commander';

import {
  type Column,
  type ColumnNote,
  type Made,
  MEANING_FIELD,
  Sample,
  type Vectors,
  fieldAt,
  fieldsFor,
  isByMeaning,
  textColumns,
} from '../documents/file-mapping.js';
import { foreignLanguage } from '../documents/language.js';
import { MEANING_OF_PART } from '../documents/text-parts.js';
import { type KnownFile, checkpointOf, keyOf, lookAt, saveCheckpoint } from '../checkpoints.js';
import { Context, integerOption, interruptible, jsonOption, withServer } from '../context.js';
import { ENCODINGS } from '../encoding.js';
import { CommandError, UsageError } from '../errors.js';
import {
  type ImportOptions,
  knownFormat,
  nameOf,
  otherOptions,
  recordedOptions,
  refuseFolder,
} from '../import-options.js';
import { type Imported, amongFiles, described } from '../imported.js';
import { type Item, itemOf } from '../items.js';
import { forbidden, mappingOf, putMapping } from '../mappings.js';
import { type Progress, progressBeside } from '../progress.js';
import { FORMATS, type Format, type ReadOptions, type Record_, formatOf, hasColumns, readRecords } from '../records.js';
import { FieldsSeen, VECTORS, holdsVectors, namesIn, refuseOtherVectors } from '../semantic-fields.js';
import { counted, inLine, number } from '../terminal.js';

const CHECKPOINT_MS = 2000;
/** Refused documents that are told one by one. */
const MOST_TOLD = 10;
/** Characters of a document from which on it is said that it takes its time. */
const LARGE = 256_000;
/** What the server says of a value that a field does not take. */
const REFUSING = /failed to parse field \[([^\]]+)\] of type \[([^\]]+)\]/;
/** Bytes of a request whose texts a model reads: some seconds, after which progress is seen and Ctrl-C is heard. */
const ENCODED_BYTES = 64 * 1024;
/** Documents by which the language of a file is told. */
const READ_FOR_LANGUAGE = 20;
/** How long a followed file is silent until what has come is written. */
const FLUSH_MS = 300;

/** `sparrow import`: documents from files. */
export function addImport(program: Command): void {
  withServer(
    program
      .command('import')
      .description(
        'load documents from files: JSON lines, JSON, CSV, TSV, plain text or Markdown, also compressed (.gz)',
      )
      .argument('<file...>', 'the files; - for standard input')
      .option('--index <name>', 'index to load them into; by default the name of the file')
      .addOption(
        new Option('--format <format>', 'format of the files, where their names do not tell it').choices(FORMATS),
      )
      .addOption(
        new Option('--encoding <name>', 'how the letters of the files are written').choices(ENCODINGS).default('utf-8'),
      )
      .option(
        '--id <field>',
        'field that holds the id; every document must have it. Without this option, documents are identified by their place in the file',
      )
      .option(
        '--semantic <field...>',
        'fields whose texts can be searched by meaning as well as by words; by default those of a new index that look like texts',
      )
      .option('--no-semantic', 'no field is searched by meaning: faster to load')
      .addOption(
        new Option(
          '--vectors <kind>',
          'vectors of what is searched by meaning: hybrid (both kinds, the default), sparse (fastest to load) or dense',
        ).choices(VECTORS),
      )
      .option('--pipeline <name>', 'ingest pipeline to run the documents through')
      .addOption(integerOption('--batch <n>', 'documents per request', 1).default(500))
      .option('--follow', 'wait for more lines at the end of the file, until Ctrl-C')
      .option('--restart', 'start at the beginning of the file, whatever was loaded before'),
    jsonOption(
      'for each file, in a list, {file, index, written, replaced, rejected, skipped, semantic, truncated_texts, notes, ms, interrupted}',
    ),
  ).action(async (files: readonly string[], options: ImportOptions) => {
    if (options.follow === true && files.length > 1) throw new UsageError('--follow takes one file');
    const [followed = ''] = options.follow === true ? [options.format ?? formatOf(files[0] ?? '')] : [];
    if (followed === 'json') throw new UsageError('--follow reads line by line, and cannot follow a JSON file');
    if (followed === 'text')
      throw new UsageError('--follow reads line by line, and cannot follow the paragraphs of a text');
    if (options.follow === true && /^-$|\.gz$/.test(files[0] ?? ''))
      throw new UsageError('--follow takes a plain file');
    if (options.vectors !== undefined && options.semantic === false)
      throw new UsageError('--no-semantic makes no vectors: leave out --vectors');
    for (const file of files) await refuseFolder(file);
    const jobs = files.map((file) => ({ file, format: knownFormat(file, options), index: nameOf(file, options) }));
    const context = new Context(options);
    const results: Imported[] = [];
    let failure: unknown;
    try {
      for (const { file, format, index } of jobs) {
        // What an earlier file of this command has loaded is no surprise.
        const isExpected = results.some((before) => before.index === index);
        const result = await new Import(context, options, file, format, index, isExpected).run();
        results.push(result);
        if (result.interrupted) break;
      }
    } catch (error) {
      failure = amongFiles(error, files, results.length);
    }
    if (failure === undefined || results.length > 0) {
      context.show(results, (out) => results.map((one) => described(out, one, options.follow === true)).join(''));
    }
    if (failure !== undefined) throw failure as Error;
    if (results.some(({ rejected }) => rejected > 0)) process.exitCode = 1;
    if (results.some(({ interrupted }) => interrupted) && options.follow !== true) process.exitCode = 130;
  });
}

class Import {
  readonly #context: Context;
  readonly #options: ImportOptions;
  readonly #file: string;
  readonly #format: Format;
  readonly #index: Index<Item>;
  readonly #recorded: string;
  readonly #progress: Progress;
  readonly #begun = performance.now();
  #key = '';
  #columns: readonly Column[] = [];
  /** The first documents of the file. */
  readonly #first: Readonly<Record<string, unknown>>[] = [];
  /** What is to be said about columns, where the index gets their fields from this file. */
  #columnNotes: readonly ColumnNote[] = [];
  #semantic: readonly string[] = [];
  /** Fields that refused documents, with their types. */
  readonly #refusing = new Map<string, string>();
  readonly #notes: string[] = [];
  /** How much of the file is read, of all of it. */
  #bytesRead = 0;
  #size: number | undefined;
  #rejected = 0;
  /** Documents of which it was said why they are refused: a second try does not say it again. */
  readonly #told = new Set<number>();
  /** The first records of standard input, which were read to see their fields and cannot be read a second time. */
  #ahead: Record_[] = [];
  #rest: AsyncGenerator<Record_> | undefined;
  /** Whether documents are left alone that are there already, as the key may replace none. */
  #onlyAdds = false;
  /** Documents that the index had before this command, of which nobody said that they are expected. */
  #before = 0;
  readonly #isExpected: boolean;
  /** Whether a model reads the documents. */
  #isEncoded = false;
  /** Whether the file has no document at all, and no line that should have been one. */
  #isEmpty = false;
  #hasToldLarge = false;

  /** @param isExpected whether the index is known to hold documents already */
  constructor(
    context: Context,
    options: ImportOptions,
    file: string,
    format: Format,
    index: string,
    isExpected: boolean,
  ) {
    this.#context = context;
    this.#options = options;
    this.#file = file;
    this.#format = format;
    this.#isExpected = isExpected;
    this.#index = context.sparrow.index<Item>(index);
    this.#recorded = recordedOptions(options);
    this.#progress = progressBeside(context.isJson, context.terminal.err, 'document');
  }

  async run(): Promise<Imported> {
    const { signal, done } = interruptible();
    signal.addEventListener('abort', () => {
      this.#progress.clear();
      if (this.#options.follow !== true)
        this.#context.note(`${inLine(this.#file)}: finishing what is under way; Ctrl-C again ends at once`);
    });
    try {
      return await this.#run(signal);
    } catch (error) {
      // Somebody who loads several files wants to know which one.
      if (!(error instanceof CommandError) || error.message.includes(this.#file)) throw error;
      throw new CommandError(`${this.#file}: ${error.message}`, { cause: error });
    } finally {
      done();
    }
  }

  async #run(signal: AbortSignal): Promise<Imported> {
    // Standard input cannot be read again.
    const file = this.#file === '-' ? undefined : await lookAt(this.#file);
    if (file !== undefined) [this.#key, this.#size] = [keyOf(file), file.size];
    await this.#checkVectors();
    const isFresh = file === undefined || this.#options.restart === true;
    const known = isFresh ? undefined : await checkpointOf(this.#context, this.#index.name, file);
    // Before the index gets fields that no document of it would have.
    if (known !== undefined && known.options !== this.#recorded) throw otherOptions(known.options, this.#recorded);
    // Lines that were added to a text may extend its last part, so the text is imported from its start.
    const before = this.#format === 'text' && known?.size !== file?.size ? undefined : known;
    await this.#look(signal);
    if (this.#isEmpty && !signal.aborted) {
      this.#context.note(`${this.#file}: there is no document in it`);
      return this.#result({ skipped: 0 });
    }
    await this.#prepare();
    if (before?.done === true && before.size === file?.size && this.#options.follow !== true) {
      this.#context.note(`${this.#file}: all of it was imported before; --restart does it again`);
      return this.#result({ skipped: before.records });
    }
    if (before !== undefined) this.#context.note(`${this.#file}: continues after document ${number(before.records)}`);
    try {
      return await this.#load(signal, file, before?.records ?? 0);
    } catch (error) {
      if (!(error instanceof MayOnlyAdd)) throw error;
      this.#onlyAdds = true;
      this.#rejected = 0;
      return this.#load(signal, file, before?.records ?? 0);
    }
  }

  async #load(signal: AbortSignal, file: KnownFile | undefined, skipped: number): Promise<Imported> {
    const { follow = false, pipeline, batch } = this.#options;
    const { err } = this.#context.terminal;
    let present = 0;
    const hold = { records: skipped, written: 0, saved: performance.now() };
    // Documents that are no JSON count as well: they are between those that are.
    const ends: number[] = [];
    let last = skipped;
    let isAtEnd = false;
    const save = async (finished: boolean): Promise<void> => {
      if (file === undefined) return;
      const checkpoint = { ...file, records: hold.records, done: finished, options: this.#recorded };
      await saveCheckpoint(this.#context, this.#index.name, checkpoint);
    };
    let saving = Promise.resolve();
    const tell = (record: Record_, why: string): void => {
      this.#rejected += 1;
      if (this.#told.has(record.n) || this.#told.size === MOST_TOLD) return;
      this.#told.add(record.n);
      this.#progress.clear();
      const more = this.#told.size === MOST_TOLD ? ' (further ones are only counted)' : '';
      err.write(`${inLine(this.#file)}, line ${number(record.line)}: ${inLine(why)}${more}\n`);
    };
    async function* items(self: Import): AsyncGenerator<Item> {
      for await (const record of self.#records(signal, follow)) {
        if (record.n <= skipped) continue;
        last = record.n;
        if (signal.aborted) return;
        const item = itemOf(record, { idField: self.#options.id, key: self.#key, columns: self.#columns });
        if (typeof item === 'string') {
          tell(record, item);
          continue;
        }
        self.#tellLarge(item);
        ends.push(record.n);
        yield item;
      }
      isAtEnd = !signal.aborted;
    }
    try {
      // A model that starts with the first documents takes some seconds.
      this.#progress.update(0, this.#share());
      let sent = 0;
      const result = await this.#index.bulk(items(this), {
        id: ({ id }) => id,
        toJson: ({ json }) => json,
        batchDocuments: batch,
        ...(this.#isEncoded ? { batchBytes: ENCODED_BYTES } : {}),
        ...(this.#onlyAdds ? { action: 'create' } : {}),
        ...(pipeline === undefined ? {} : { pipeline }),
        ...(follow ? { flushAfterMs: FLUSH_MS } : {}),
        onRejected: ({ document: { record }, error }) => {
          // The lines of a file are there to be read again.
          if (!this.#onlyAdds && file !== undefined && mayOnlyAdd(error)) throw new MayOnlyAdd();
          // Each document that follows would be refused as well.
          if (error.type === 'cluster_block_exception') throw error;
          if (this.#onlyAdds && error.status === 409) present += 1;
          else {
            const [, field, type] = REFUSING.exec(error.message) ?? [];
            if (field !== undefined && type !== undefined) this.#refusing.set(field, type);
            // A place in the document would be a second one beside the line of the file.
            tell(record, error.message.replace(/^\[\d+:\d+\] /, ''));
          }
        },
        onProgress: ({ documents, written }) => {
          hold.records = ends[documents - sent - 1] ?? hold.records;
          ends.splice(0, documents - sent);
          sent = documents;
          hold.written = written;
          this.#progress.update(written, this.#share(), this.#rejected > 0 ? `${number(this.#rejected)} rejected` : '');
          if (performance.now() - hold.saved < CHECKPOINT_MS) return;
          hold.saved = performance.now();
          saving = saving.then(() => save(false));
          // Waited for below.
          saving.catch(() => undefined);
        },
      });
      this.#progress.clear();
      await saving;
      const interrupted = signal.aborted && !isAtEnd;
      if (!interrupted) hold.records = last;
      await this.#index.refresh().catch(forbidden);
      await save(!interrupted);
      if (this.#before > 0 && skipped === 0 && result.written > result.replaced)
        this.#notes.unshift(
          `added to an existing index of ${counted(this.#before, 'document')}: to start over, delete it first (DELETE /${this.#index.name}, or in the console)${this.#options.id === undefined ? ', or name with --id the field by which documents are replaced' : ''}`,
        );
      this.#noteRefusing();
      return this.#result({
        skipped: skipped + present,
        written: result.written,
        replaced: result.replaced,
        truncated: result.truncatedTexts,
        interrupted,
      });
    } catch (error) {
      this.#progress.clear();
      await saving.catch(() => undefined);
      await save(false).catch(() => undefined);
      const what = isDiskFull(error)
        ? 'the disk of the server is nearly full, so it takes no documents: make room there'
        : (error instanceof Error ? error.message : String(error)).replace(/;$/, '');
      const done_ = hold.records === 0 ? '' : `; ${this.#soFar(skipped + hold.written)}`;
      if (error instanceof CommandError || error instanceof SparrowError) {
        throw new CommandError(`${this.#file}: ${what}${done_}`, { cause: error });
      }
      throw error;
    }
  }

  /** How many documents an import that failed has written, and how it goes on. */
  #soFar(written: number): string {
    const isOne = written === 1;
    const what =
      written === 0 ? 'nothing was written' : `${counted(written, 'document')} ${isOne ? 'is' : 'are'} written`;
    return `${what}, run this again to go on`;
  }

  /** What to do about documents whose values do not fit the fields of the index. */
  #noteRefusing(): void {
    if (this.#refusing.size === 0) return;
    const { name } = this.#index;
    const fields = [...this.#refusing].map(([field, type]) => `[${field}] (${type})`);
    const dates = [...this.#refusing.values()].some((type) => type.startsWith('date'))
      ? ', or a date with a `format` that lists the forms (see /_docs/fields on the server)'
      : '';
    this.#notes.push(
      `the rejected values do not fit ${fields.join(', ')}: correct them in the file; or delete the index (DELETE /${name}), create it with a mapping in which the field is a keyword${dates}, and import again with --restart`,
    );
  }

  /** Says of the first document that takes minutes that it does: until it is done, nothing else is to be seen. */
  #tellLarge({ json, record }: Item): void {
    if (this.#hasToldLarge || json.length < LARGE || this.#semantic.length === 0) return;
    this.#hasToldLarge = true;
    const size = `${number(Math.round(json.length / 1000))} kB`;
    this.#progress.clear();
    this.#context.note(
      `${inLine(this.#file)}, line ${number(record.line)}: a document of ${size}, which may take minutes to encode: split into parts of about a page, a search would find the part that answers`,
    );
  }

  /** The documents of the file, with those that were read before. */
  async *#records(signal: AbortSignal, follow: boolean): AsyncGenerator<Record_> {
    const ahead = this.#ahead;
    this.#ahead = [];
    yield* ahead;
    yield* this.#rest ?? this.#read(signal, follow);
  }

  #read(signal: AbortSignal, follow: boolean): AsyncGenerator<Record_> {
    const onRead = (bytes: number): void => {
      this.#bytesRead = bytes;
    };
    return readRecords(this.#file, { ...this.#written(), follow, signal, onRead });
  }

  /** How the file is written. */
  #written(): Pick<ReadOptions, 'format' | 'encoding'> {
    return { format: this.#format, encoding: this.#options.encoding };
  }

  /** The part of the file that is read; undefined where nobody knows how much there is. */
  #share(): number | undefined {
    return this.#size === undefined || this.#size === 0 || this.#options.follow === true
      ? undefined
      : this.#bytesRead / this.#size;
  }

  #result({
    skipped,
    written = 0,
    replaced = 0,
    truncated = 0,
    interrupted = false,
  }: {
    skipped: number;
    written?: number;
    replaced?: number;
    truncated?: number;
    interrupted?: boolean;
  }): Imported {
    return {
      file: this.#file,
      index: this.#index.name,
      written,
      replaced,
      rejected: this.#rejected,
      skipped,
      semantic: this.#semantic,
      truncated_texts: truncated,
      notes: this.#notes,
      ms: Math.round(performance.now() - this.#begun),
      interrupted,
    };
  }

  /** Makes the index, or gives the one that is there the fields that are asked for. */
  async #prepare(): Promise<void> {
    const { semantic, vectors, pipeline } = this.#options;
    const named = semantic === false ? [] : semantic;
    const meaning = named ?? (this.#format === 'text' ? [MEANING_OF_PART] : textColumns(this.#columns));
    // A pipeline may make dates or numbers of what the file has as texts: those get their fields from its documents.
    const mixed = new Set(pipeline === undefined ? [] : this.#columnNotes.map(({ name }) => name));
    const columns = this.#columns.filter(({ name }) => !mixed.has(name));
    const properties = fieldsFor(columns, meaning, vectors ?? 'hybrid');
    try {
      if (await this.#index.ensure({ mappings: { properties } })) {
        this.#semantic = meaning;
        this.#isEncoded = meaning.length > 0 || pipeline !== undefined;
        this.#noteLanguage(meaning);
        const told = this.#columnNotes.filter(({ name }) => pipeline === undefined && !meaning.includes(name));
        this.#notes.push(...told.map(({ text }) => text));
        if (this.#options.id === undefined && this.#columns.some(({ name }) => name === 'id'))
          this.#notes.push(
            'the _id of a document is its place in the file: --id id takes that of the field id instead',
          );
      } else {
        const { properties: there = {} } = await mappingOf(this.#context, this.#index.name);
        this.#isEncoded = pipeline !== undefined || leaves(there).some(([, { type }]) => type === 'semantic_text');
        if (!this.#isExpected)
          this.#before = await this.#index.count().catch((error: unknown) => (forbidden(error), 0));
        if (named !== undefined && named.length > 0) await this.#addFields(named, vectors);
      }
    } catch (error) {
      // A key that may only write makes the index by its first document, without fields of its own.
      if (named !== undefined && named.length > 0) throw error;
      forbidden(error);
    }
  }

  /** Says that the embedded models do not read what is to be searched by meaning, where that is clear. */
  #noteLanguage(meaning: readonly string[]): void {
    const texts = this.#first.flatMap((document) => meaning.map((name) => document[name]));
    const language = foreignLanguage(texts.filter((text) => typeof text === 'string').join(' '));
    if (language !== undefined)
      this.#notes.push(
        `these texts look like ${language}, and the models that come with Sparrow read English only: they are found by their words, but not by their meaning (see /_docs/guides/models on the server)`,
      );
  }

  /** Adds the fields that are missing, and gives another model to those that have no vectors yet where that is asked for. */
  async #addFields(named: readonly string[], vectors: Vectors | undefined): Promise<void> {
    const { properties: there = {} } = await mappingOf(this.#context, this.#index.name);
    const added = named.filter((name) => !isByMeaning(there, name));
    const made = fieldsFor([], named, vectors ?? 'hybrid');
    const vectorsThere = fieldAt(there, MEANING_FIELD);
    const isKept = vectors === undefined ? vectorsThere?.type === 'semantic_text' : holdsVectors(vectorsThere);
    const wanted = Object.entries<Made>(made).filter(([name]) =>
      name === MEANING_FIELD ? !isKept : added.includes(name),
    );
    if (wanted.length > 0)
      await putMapping(this.#context, this.#index.name, { properties: Object.fromEntries(wanted) });
    this.#semantic = added;
  }

  /** Refuses another kind of vectors than the index has, as neither this command nor --restart can replace them. */
  async #checkVectors(): Promise<void> {
    const { vectors } = this.#options;
    if (vectors === undefined) return;
    refuseOtherVectors(this.#index.name, await mappingOf(this.#context, this.#index.name), vectors);
  }

  /**
   * Reads the columns of the file, as its first documents tell, and what is to be said about them.
   *
   * @throws {CommandError} if none of these has a field that an option names: all would be refused, or their texts never found
   */
  async #look(signal: AbortSignal): Promise<void> {
    const { semantic, pipeline, id, follow = false } = this.#options;
    if (Array.isArray(semantic) && semantic.includes('')) throw new UsageError('--semantic needs the name of a field');
    const checks = [
      // The id stands in the document itself.
      new FieldsSeen('--id', id === undefined ? [] : [id], Object.keys),
      // A pipeline may make a field that the file does not have.
      new FieldsSeen('--semantic', pipeline === undefined && Array.isArray(semantic) ? semantic : [], namesIn),
    ];
    const isPiped = this.#file === '-';
    const ending = new AbortController();
    const records = this.#read(isPiped ? signal : ending.signal, false);
    const sample = new Sample(hasColumns(this.#format));
    let isAll = false;
    let isRead = false;
    let wrong: string | undefined;
    this.#isEmpty = !follow;
    try {
      while (!sample.isFull) {
        const next = await records.next();
        isAll = next.done === true;
        if (next.done === true) break;
        this.#isEmpty = false;
        const { document, line, problem } = next.value;
        if (isPiped) this.#ahead.push(next.value);
        if (document === undefined) {
          wrong ??= `line ${number(line)}: ${inLine(problem ?? 'it cannot be read')}`;
          continue;
        }
        isRead = true;
        sample.add(document);
        if (this.#first.length < READ_FOR_LANGUAGE) this.#first.push(document);
        for (const seen of checks) seen.add(document);
      }
    } finally {
      if (isPiped) {
        this.#rest = records;
      } else {
        ending.abort();
        await records.return(undefined);
      }
    }
    if (isAll && !isRead && wrong !== undefined)
      throw new CommandError(`none of its documents can be read, and nothing was written: ${wrong}`);
    const one = hasColumns(this.#format) ? 'column' : 'field';
    for (const seen of checks) {
      const problem = seen.problem(isAll, one);
      if (problem !== undefined) throw new CommandError(problem);
    }
    // A column named _id gives the ids of the documents, which are not a field.
    this.#columns = sample.columns().filter(({ name }) => name !== '_id');
    this.#columnNotes = sample.notes();
    const decimalCommas = sample.decimalCommas();
    // A pipeline may make numbers of them.
    if (decimalCommas !== undefined && pipeline === undefined) this.#notes.push(decimalCommas);
  }
}

/** The first document was refused because it could have replaced another one. */
class MayOnlyAdd extends Error {}

/** Whether documents are refused for want of room on the server's disk. */
function isDiskFull(error: unknown): boolean {
  return error instanceof SparrowError && error.status === 429 && error.type === 'cluster_block_exception';
}

/** Whether a document was refused because the key may add documents, and replace none. */
function mayOnlyAdd({ status, message }: SparrowError): boolean {
  return status === 403 && message.includes('[indices:data/write/index:op_type/index]');
}
