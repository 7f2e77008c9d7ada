// What a caller without types, or with a slip of the hand, gets wrong. The engine refuses what is wrong in a request; these are the
// arguments that would not reach it, or would reach it as something else.

/**
 * Refuses options that there are not: left out in silence, a misspelt `data` would be a temporary directory.
 *
 * @param known the options that there are; an object, so that a type can say that none is missing
 * @throws {TypeError} naming them
 */
export function refuseUnknown(what: string, options: object, known: Readonly<Record<string, true>>): void {
  object(`the options of ${what}`, options);
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(known, name));
  if (unknown.length === 0) return;
  throw new TypeError(`${what} has no option ${unknown.join(', ')}; it takes ${Object.keys(known).join(', ')}`);
}

/**
 * The options of a call, checked as {@link refuseUnknown} does.
 *
 * @throws {TypeError} for one that there is not
 */
export function known<Options extends object>(
  what: string,
  options: Options,
  names: Readonly<Record<keyof Options, true>>,
): Options {
  refuseUnknown(what, options, names);
  return options;
}

/**
 * An object where one is needed: a text would be sent as it is, and its letters taken for options.
 *
 * @param example how it is written right
 * @throws {TypeError} for anything else
 */
export function object<T extends object>(what: string, value: T, example = '{ … }'): T {
  if (typeof value === 'object' && (value as unknown) !== null && !Array.isArray(value)) return value;
  throw new TypeError(`${what} must be an object, such as ${example}`);
}

/**
 * A number of things.
 *
 * @throws {TypeError} for what is no whole number from 1 on
 */
export function amount(what: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value;
  throw new TypeError(`${what} must be a whole number, at least 1`);
}

/**
 * A text that names something. Without one, a request would be about everything, or make a name.
 *
 * @throws {TypeError} for anything else, and for an empty one
 */
export function named(what: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`${what} must be a string that is not empty`);
}
