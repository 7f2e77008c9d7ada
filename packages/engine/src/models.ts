import { existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** npm packages whose contents are a model directory. This package depends on them, so that they are there wherever it is. */
const EMBEDDED = ['@sparrow-search/model-splade-tiny', '@sparrow-search/model-minilm-l6'];

/** Directories of the models that are installed with the engine. */
export function embeddedModels(): readonly string[] {
  return EMBEDDED.flatMap((name) => {
    try {
      return [dirname(require.resolve(`${name}/package.json`))];
    } catch {
      return [];
    }
  });
}

/**
 * The model directories inside `folder`: every child with a `model.onnx`, or the folder itself.
 *
 * @throws if there is no such folder
 */
export function modelDirectories(folder: string): readonly string[] {
  if (existsSync(join(folder, 'model.onnx'))) return [folder];
  return children(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isDirectory() && existsSync(join(path, 'model.onnx')))
    .sort();
}

function children(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`cannot read the folder ${folder} (${code ?? String(cause)})`, { cause });
  }
}
