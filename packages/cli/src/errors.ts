/** Something that a person can mend, in one sentence. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** A command line that makes no sense. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
