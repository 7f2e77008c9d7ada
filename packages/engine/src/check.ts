import type { Addon } from './binding.js';
import { findBinding, loadAddon } from './binding.js';
import type { NativeReply } from './addon.generated.js';
import { EngineError } from './errors.js';

/** A file that is not as it was written. */
export interface Problem {
  /** Place in the data directory. */
  readonly file: string;
  /** What is wrong with the file, as a sentence. */
  readonly reason: string;
  /** Who cannot do without it. */
  readonly affected: string;
}

/** What was found in a data directory. */
export interface Report {
  /** The directory that was looked at. */
  readonly data: string;
  /** The indices that the directory holds. */
  readonly indices: readonly {
    /** What the index is called. */
    readonly name: string;
    /** What the index's folder is called. */
    readonly uuid: string;
    /** Whether a file that the index cannot do without is damaged. */
    readonly damaged: boolean;
  }[];
  /** The files that are damaged or missing. */
  readonly problems: readonly Problem[];
}

/** A file of a snapshot repository that is damaged or missing. */
export interface RepositoryProblem {
  /** Place in the repository. */
  readonly file: string;
  /** What is wrong with the file, as a sentence. */
  readonly reason: string;
  /** Names of the snapshots that cannot be restored whole without it. */
  readonly snapshots: readonly string[];
  /** What of them it is a part of. */
  readonly parts: readonly string[];
}

/** What was found in a snapshot repository. */
export interface RepositoryReport {
  /** The folder that was looked at. */
  readonly repository: string;
  /** The snapshots that it holds. */
  readonly snapshots: readonly {
    /** What the snapshot is called. */
    readonly snapshot: string;
    /** What tells it from others of the same name. */
    readonly uuid: string;
    /** How its making ended, such as `SUCCESS`. */
    readonly state: string;
    /** Whether a file is damaged or missing without which it cannot be restored whole. */
    readonly damaged: boolean;
  }[];
  /** Files of indices and models that were read and are whole. */
  readonly blobs: number;
  /** Bytes of those files. */
  readonly bytes: number;
  /** Files that no snapshot has. */
  readonly unneeded: number;
  /** The files that are damaged or missing. */
  readonly problems: readonly RepositoryProblem[];
}

/** What of a damaged data directory is in the new one. */
export interface Repair {
  /** What the damaged directory held. */
  readonly found: Report;
  /** The directory that was made. */
  readonly into: string;
  /** What has become of each index. */
  readonly indices: readonly {
    /** What the index is called. */
    readonly name: string;
    /** Whether no file of it was damaged, so that all were copied as they are. */
    readonly whole: boolean;
    /** Documents that the new directory has. */
    readonly kept: number;
    /** Absent if the number is not known. */
    readonly lost?: number;
    /** Ids of writes in the log that could be read and not be applied. */
    readonly lost_ids: readonly string[];
    /** What else somebody should know who relies on the new index, in sentences. */
    readonly notes: readonly string[];
  }[];
  /** Damaged files that belong to no index and are not in the new directory. */
  readonly left_out: readonly string[];
}

/**
 * Reads every file of a data directory that nobody has open, and compares it with its checksum. Blocks until it is done.
 *
 * @throws {EngineError} when it is in use or no data directory
 */
export function checkData(data: string): Report {
  return unwrap(loaded().checkData(data)) as Report;
}

/**
 * Reads every file of a snapshot repository and compares it with its hash. Writes nothing; a server may use the repository meanwhile.
 * Blocks until it is done.
 *
 * @throws {EngineError} when it is no repository
 */
export function checkRepository(repository: string): RepositoryReport {
  return unwrap(loaded().checkRepository(repository)) as RepositoryReport;
}

/**
 * Makes in `into` a data directory of what can be kept of `data`. Blocks until it is done.
 *
 * @param unusable files below `data` that the caller has found damaged: they are left out
 * @throws {EngineError} when `data` is in use, or `into` is not empty or cannot be written
 */
export function repairData(data: string, into: string, unusable: readonly string[]): Repair {
  return unwrap(loaded().repairData(data, into, [...unusable])) as Repair;
}

function loaded(): Addon {
  return loadAddon(findBinding());
}

function unwrap(reply: NativeReply): unknown {
  if (!reply.ok) throw new EngineError(reply.status, reply.body);
  return JSON.parse(new TextDecoder().decode(reply.body));
}
