// Generated from crates/node by scripts/lib/addon-types.mjs: do not edit.
/* eslint-disable */

/** One of the lists of a calibrated fusion, best first. */
export interface CalibratedList {
  /** Numbers of the documents, without repeats. */
  documents: Uint32Array
  /** The score of each document. */
  scores: Float32Array
  /** Weight of the list in the fused scores. */
  weight: number
  /** The map of the list's scores in each index; absent where the list finds nothing there. */
  maps: Array<CalibrationMap | undefined | null>
}

/** How the scores of a list in one index become probabilities: the logistic function of `gain · score + offset`. */
export interface CalibrationMap {
  /** Factor of a score. */
  gain: number
  /** Log-odds of the score 0. */
  offset: number
  /** Log-odds that a document which is not in the list is relevant. */
  absent: number
}

/** Documents with their fused scores, best first. Equal scores are ordered by the first list that holds either document. */
export interface FusedList {
  /** Numbers of the documents. */
  documents: Uint32Array
  /** The fused score of each document. */
  scores: Float32Array
}

/** One open data directory with everything that serves it. */
export declare class NativeEngine {
  /**
   * Opens a data directory. `options` is an `EngineOptions` as JSON. Resolves once the write-ahead log is replayed and
   * the deployments that ran before are started, or with the error that prevented it. `onReplies` gets the answers to
   * all requests, as many at once as are there.
   */
  static open(options: string, onReplies: (replies: Array<NativeReply>) => void): Promise<NativeEngine | NativeReply>
  /**
   * Starts one request. `request` is a `Request` as JSON, `body` the bytes as they came, and `handle` a number that no
   * other running request has: the answer bears it, and `cancel` finds this one by it. If `inline`, a short read is
   * answered at once, as the result, unless another request runs: the event loop is held up for one millisecond at most, for two
   * by a text that is encoded, and for what cannot be stopped.
   */
  execute(handle: number, request: string, body: Buffer | undefined | null, inline: boolean): NativeReply | null
  /** Asks a running request to stop; it then answers with an error. Does nothing if it has already answered. */
  cancel(handle: number): void
  /**
   * Bytes that the process may still allocate, by the limit of the cluster's settings; without bodies and answers that JavaScript
   * keeps.
   */
  room(): number
  /** Says how many bytes of bodies JavaScript keeps now, also of requests that have not come whole. */
  keepBodies(bytes: number): void
  /**
   * Flushes everything and releases the data directory. Requests after this are refused; those under way are waited for, a few
   * seconds at most.
   */
  close(): Promise<void>
}

/** What a request came to. `ok: false` carries an error body that is ready to be sent as it is. */
export interface NativeReply {
  /** The number that the caller gave the request. */
  handle: number
  /** Whether the engine answered (`true`) or refused with an error (`false`). */
  ok: boolean
  /** HTTP status of the answer. */
  status: number
  /** The answer's bytes: JSON, or plain text. */
  body: Buffer
  /** Whether `body` is plain text. */
  text: boolean
  /** Warnings about deprecated forms that the request used, one sentence each; absent without such a form. */
  warnings?: Array<string>
  /** The indices and aliases that the request came to; absent where it did not ask for them. */
  named?: Array<string>
  /** Index, id and, if it has one, routing of the document that the request created; absent if it created none. */
  created?: Array<string>
  /** Whether parts of the request were refused for want of a right; absent if none was. */
  refusedParts?: boolean
  /** Tokens that a model has read for the request; absent where it did not ask for that alone. */
  tokens?: number
  /** Whether the request was refused as a queue has no room for now; absent if not. */
  full?: boolean
}

/** One of the lists to fuse, best first. */
export interface RankedList {
  /** Numbers of the documents, without repeats. */
  documents: Uint32Array
  /** The score of each document. */
  scores: Float32Array
  /** Factor of the list's contribution to the fused scores. */
  weight: number
  /** How `linear` normalizes the scores: `none`, `minmax`, `l2_norm`, `zscore` or `rarity`. */
  normalizer: string
}

/** The lists of a short form, or the error that a search with it answers. */
export interface ShortFormLists {
  /** HTTP status: 200, or that of the error. */
  status: number
  /** JSON. */
  body: string
}

/** Decompresses Zstandard frames in pieces, so that somebody can stop when there are too many. */
export declare class ZstdReader {
  /** Begins with frames, which may not be changed until they are read or closed. */
  constructor(bytes: Buffer)
  /**
   * Resolves with up to 256 KiB, or with null when there are no more; rejects when the frames are malformed or cut off, or
   * want a window over 8 MiB. The next piece may be asked for when this one is there.
   */
  next(): Promise<Buffer | null>
  /** Lets go of the frames and of the memory for them. */
  close(): void
}

/**
 * Looks at a data directory that nobody has open. Gives a report as JSON, `{data, indices, problems}`, or the error body of why it
 * could not be looked at.
 */
export declare function checkData(data: string): NativeReply

/**
 * Looks at a snapshot repository. Gives a report as JSON, `{repository, snapshots, blobs, bytes, unneeded, problems}`, or the error body
 * of why it could not be looked at.
 */
export declare function checkRepository(repository: string): NativeReply

/** Sets what the engine logs: `silent`, `error`, `warn`, `info` or `debug`, as text for people or as JSON lines. */
export declare function configureLog(level: string, asText: boolean): void

/**
 * What the HTTP layer has to know of the engine's operations, of the actions that privileges are granted for, and of what the bodies of
 * queries hold, as JSON: `{operations, actions, queries}`, each an object by name.
 */
export declare function declared(): string

/** The lists that the short form of a fusion stands for, as JSON: `given` holds the retriever, and the indices that are searched. */
export declare function expandShortForm(given: string): ShortFormLists

/**
 * Frees the bytes of an answer that has been sent, which V8 would keep until it next collects garbage: after a long answer that can be
 * never. Nothing may use them any more.
 */
export declare function freeAnswer(bytes: ArrayBuffer): void

/**
 * Fuses lists into probabilities of relevance, as searches with the normalizer `calibrated` do. `indices` has the number of the index of
 * each document.
 */
export declare function fuseCalibrated(indices: Uint32Array, lists: Array<CalibratedList>): FusedList

/** Fuses lists as searches do: by reciprocal ranks with the given constant, or without one by the sum of normalized scores. */
export declare function fuseLists(rankConstant: number | undefined | null, lists: Array<RankedList>): FusedList

/**
 * Makes in `into` a data directory of what can be kept of a damaged one. Gives a report as JSON, `{found, into, indices, left_out}`, or
 * the error body that says why nothing could be kept. Files of `unusable`, by their paths below `data`, are left out.
 */
export declare function repairData(data: string, into: string, unusable: Array<string>): NativeReply

/**
 * Gives an answer in JSON another shape. `shape` is a `Shape` as JSON. The bytes may not be changed meanwhile. Resolves with
 * a word when the paths of `filter_path` take too many steps on this answer, or laid out it would be too long, or than there is memory.
 */
export declare function shapeAnswer(bytes: Buffer, shape: string): Promise<Buffer | 'tooMuchWork' | 'tooLong' | 'noRoom'>

/** Why a `bulk` or an `msearch` is refused whose last line does not end, for those that do not reach the engine as they came. */
export declare function unterminated(request: 'bulk' | 'msearch', body: Buffer): string

/** Compresses bytes into one Zstandard frame. They may not be changed meanwhile. */
export declare function zstdCompress(bytes: Buffer, level: number): Promise<Buffer>
