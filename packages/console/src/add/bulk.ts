// Sends documents in portions, as fast as the server takes them.
import { Refused, call } from '../lib/api';

export interface Document {
  /** The server makes an id for a document without one. */
  readonly id?: string | undefined;
  readonly source: Readonly<Record<string, unknown>>;
}

export interface Progress {
  readonly sent: number;
  readonly failed: number;
  /** The first reasons for which documents were refused. */
  readonly reasons: readonly string[];
}

interface BulkAnswer {
  readonly items: readonly Readonly<
    Record<string, { readonly status: number; readonly error?: { readonly type: string; readonly reason: string } }>
  >[];
}

/** Documents and characters of a portion: small enough for the bar to move, large enough to fill the model's batches. */
const PORTION = 250;
const PORTION_CHARACTERS = 400_000;
const SHOWN_REASONS = 5;
/** Longest wait that the server may ask for before a portion is given up, in seconds. */
const LONGEST_WAIT = 60;

export function bulkLines(documents: readonly Document[]): string {
  return documents
    .map(
      ({ id, source }) =>
        `${JSON.stringify({ index: id === undefined ? {} : { _id: id } })}\n${JSON.stringify(source)}\n`,
    )
    .join('');
}

/** Cuts documents into portions for one request each. */
export function portions(documents: readonly Document[]): Document[][] {
  const all: Document[][] = [];
  let portion: Document[] = [];
  let characters = 0;
  for (const document of documents) {
    const length = JSON.stringify(document.source).length;
    if (portion.length >= PORTION || (portion.length > 0 && characters + length > PORTION_CHARACTERS)) {
      all.push(portion);
      portion = [];
      characters = 0;
    }
    portion.push(document);
    characters += length;
  }
  if (portion.length > 0) all.push(portion);
  return all;
}

let uploads = 0;

/** Whether documents are on their way: their progress is on the screen, and so is what stops them. */
export function isUploading(): boolean {
  return uploads > 0;
}

/**
 * Writes documents into an index. Refused ones (a full queue) are sent again; others are counted.
 *
 * @throws Refused if a whole request is refused for good
 */
export async function upload(
  index: string,
  documents: readonly Document[],
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Progress> {
  let progress: Progress = { sent: 0, failed: 0, reasons: [] };
  uploads += 1;
  try {
    for (const portion of portions(documents)) {
      const { failed, reasons } = await sendPortion(index, portion, signal);
      progress = {
        sent: progress.sent + portion.length - failed,
        failed: progress.failed + failed,
        reasons: [...new Set([...progress.reasons, ...reasons])].slice(0, SHOWN_REASONS),
      };
      onProgress(progress);
    }
    await call('POST', `/${encodeURIComponent(index)}/_refresh`, undefined, { signal });
    return progress;
  } finally {
    uploads -= 1;
  }
}

async function sendPortion(
  index: string,
  portion: readonly Document[],
  signal: AbortSignal,
): Promise<{ failed: number; reasons: string[] }> {
  let open = portion;
  let waited = 0;
  let failed = 0;
  const reasons: string[] = [];
  while (open.length > 0) {
    let answer: BulkAnswer | undefined;
    let seconds = 1;
    try {
      answer = await call<BulkAnswer>('POST', `/${encodeURIComponent(index)}/_bulk`, bulkLines(open), { signal });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 429 || waited > LONGEST_WAIT) throw error;
      seconds = error.retryAfter ?? 1;
    }
    if (answer !== undefined) {
      const results = answer.items.map((item) => Object.values(item)[0]);
      const again = open.filter((_, at) => results[at]?.status === 429 && waited <= LONGEST_WAIT);
      for (const result of results) {
        if (result?.error === undefined || (result.status === 429 && waited <= LONGEST_WAIT)) continue;
        failed += 1;
        reasons.push(result.error.reason);
      }
      open = again;
    }
    if (open.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      waited += seconds;
    }
  }
  return { failed, reasons };
}
