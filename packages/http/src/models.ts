import { modelDirectories as directories } from '@sparrow-search/engine';

import { ConfigError } from './config.js';

/**
 * The model directories inside the folder that `--models` names.
 *
 * @throws {ConfigError} if there is no such folder
 */
export function modelDirectories(folder: string): readonly string[] {
  try {
    return directories(folder);
  } catch (cause) {
    throw new ConfigError(`--models: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
