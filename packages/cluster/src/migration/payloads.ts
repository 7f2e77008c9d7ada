import { pathOfSlot } from '../passage-mappings.js';

/** The layout of payloads that is read here: `crates/mapping/src/passages.rs` describes it. */
const VERSION = 1;

/** Kinds of passages by what they have of vectors. */
const WITH_TOKENS = [1, 3];
const WITH_VECTOR = [2, 3];

const FLOAT = 4;

/**
 * Whether documents have the same passages on both sides of a move. A field whose model was changed once has its vectors under another
 * name than one that was made with the model, and while it is changed a second set that does not move.
 *
 * @param ours what is stored of the passages where they come from, in Base64; null for none
 * @param theirs the same where they are now
 */
export function areSamePassages(ours: string | null, theirs: string | null): boolean {
  if (ours === theirs) return true;
  if (ours === null || theirs === null) return false;
  const [before, after] = [fieldsIn(ours), fieldsIn(theirs)];
  if (after === undefined || before?.size !== after.size) return false;
  return [...after].every(([path, sets]) => {
    const all = before.get(path) ?? [];
    return sets.every((set) => all.some((one) => one.equals(set)));
  });
}

/** What a payload has under the path of each field: a set of passages, or several; undefined where it cannot be read. */
function fieldsIn(payload: string): ReadonlyMap<string, readonly Buffer[]> | undefined {
  const found = new Map<string, Buffer[]>();
  try {
    const input = new Input(Buffer.from(payload, 'base64'));
    if (input.byte() !== VERSION) return undefined;
    for (let fields = input.short(); fields > 0; fields -= 1) {
      const path = pathOfSlot(input.text());
      const from = input.at;
      // The endpoint, the fingerprint, and how texts are cut.
      for (let texts = 3; texts > 0; texts -= 1) input.text();
      for (let sources = input.short(); sources > 0; sources -= 1) input.text();
      for (let passages = input.long(); passages > 0; passages -= 1) {
        // Which text it is from, and from where to where.
        input.at += 2 + 4 + 4;
        const kind = input.byte();
        if (WITH_TOKENS.includes(kind)) {
          for (let tokens = input.long(); tokens > 0; tokens -= 1) {
            input.text();
            input.at += FLOAT;
          }
        }
        if (WITH_VECTOR.includes(kind)) {
          const numbers = input.long();
          input.at += FLOAT * numbers;
        }
      }
      const sets = found.get(path) ?? [];
      found.set(path, [...sets, input.bytes.subarray(from, input.at)]);
    }
    return input.at === input.bytes.length ? found : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

class Input {
  at = 0;

  constructor(readonly bytes: Buffer) {}

  byte(): number {
    return this.bytes.readUInt8(this.at++);
  }

  short(): number {
    this.at += 2;
    return this.bytes.readUInt16LE(this.at - 2);
  }

  long(): number {
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }

  text(): string {
    const length = this.short();
    this.at += length;
    return this.bytes.toString('utf8', this.at - length, this.at);
  }
}
