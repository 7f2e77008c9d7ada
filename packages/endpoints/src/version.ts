import { createRequire } from 'node:module';

/** The version of the interface that is spoken; clients decide by it what they may ask. */
export const INTERFACE_VERSION = '8.19.21';

/** The version of Sparrow, which all its packages have. */
export const VERSION: string = (
  createRequire(import.meta.url)('@sparrow-search/endpoints/package.json') as { version: string }
).version;
