// What the server should hold.
import { PROPERTIES } from './documents.mjs';
import { Register } from './register.mjs';

/** Lines of an index's log that are kept: enough to look into a failure. */
const LOG_LINES = 1500;

/** One life of an index: one that is deleted and created again is another. */
export class IndexModel {
  /** Documents by id: `{ source, version, seqNo }` with the source as JSON text, or null for none. */
  docs = new Map();
  /** Types of the fields that the mapping must have. */
  fields = new Map();
  /** Sequence numbers that were answered, with the id they were answered for. */
  seqNos = new Map();
  /** Operations under way. */
  users = new Set();
  /** Clients whose background job reads or writes their documents here. */
  lockedBy = new Set();
  /** Whether its owner waits for the others to end before it deletes the index. */
  leaving = false;
  /** How often its availability began to change. */
  epoch = 0;
  log = [];

  /**
   * @param {string} name
   * @param {{ owner: number, ordinal: number, shape?: string, dynamic?: boolean, volatile?: boolean, exists?: boolean }} options
   *   `owner` is the client that may close, block and delete it
   */
  constructor(name, { owner, ordinal, shape = 'current', dynamic = true, volatile = false, exists = true }) {
    Object.assign(this, { name, owner, ordinal, shape, dynamic, volatile });
    this.exists = new Register(exists);
    this.open = new Register(true);
    this.settings = new Map([
      ['blocks.write', new Register('false')],
      ['refresh_interval', new Register(shape === 'current' ? '100ms' : null)],
      ['max_result_window', new Register(null)],
    ]);
    if (shape === 'current') for (const [field, { type }] of Object.entries(PROPERTIES)) this.fields.set(field, type);
  }

  /** The register of a document, made when it is first asked for. */
  doc(id) {
    let register = this.docs.get(id);
    if (register === undefined) this.docs.set(id, (register = new Register(null)));
    return register;
  }

  get blocked() {
    return this.settings.get('blocks.write');
  }

  /** Whether it is known to be there. */
  get live() {
    return this.exists.settled && this.exists.latest === true && !this.leaving;
  }

  /** Whether it is known to be there, open and writable: no write may be refused then. */
  get available() {
    const { exists, open, blocked } = this;
    return this.live && open.settled && open.latest && blocked.settled && blocked.latest === 'false' && exists.settled;
  }

  note(line) {
    this.log.push(line);
    if (this.log.length > LOG_LINES) this.log.splice(0, LOG_LINES / 3);
  }

  /** The log's lines that name a document, or the last ones of the index. */
  logOf(id, limit = 30) {
    const lines =
      id === undefined ? this.log : this.log.filter((line) => line.ids === undefined || line.ids.includes(id));
    return lines.slice(-limit).map((line) => line.text);
  }
}

export class Model {
  /** @type {Map<string, IndexModel>} by name; deleted ones stay, so that they are missed if they come back */
  indices = new Map();
  /** Aliases, pipelines and templates by name. */
  aliases = new Map();
  pipelines = new Map();
  templates = new Map();

  add(index) {
    this.indices.set(index.name, index);
    return index;
  }

  get live() {
    return [...this.indices.values()].filter((index) => index.live);
  }
}
