// Reads a suite: one folder per API, in it YAML files of sections (`setup`, `teardown`, tests), which are lists of steps.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

import { parseYaml } from './yaml-values.mjs';

/**
 * @typedef {{ file: string, name: string, steps: object[], setup: object[], teardown: object[] }} SuiteTest
 *   `file` is relative to the folder of the tests, with slashes
 */

/** The folders of a suite: `test` and `api` below `directory`, or below `directory/rest-api-spec`. */
export function suiteFolders(directory) {
  for (const root of [directory, join(directory, 'rest-api-spec')]) {
    if (existsSync(join(root, 'test'))) return { tests: join(root, 'test'), api: join(root, 'api') };
  }
  throw new Error(`${directory} holds no folder 'test' or 'rest-api-spec/test'`);
}

/** All tests below a folder, in the order of their files. A file that cannot be read is a test that throws why. */
export function loadTests(folder) {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .flatMap((name) => {
      const path = join(folder, name);
      return testsOf(relative(folder, path).split(sep).join('/'), readFileSync(path, 'utf8'));
    });
}

function testsOf(file, text) {
  let sections;
  try {
    sections = parseYaml(text).flatMap((document) => Object.entries(document));
  } catch (error) {
    return [{ file, name: 'the file', steps: [{ unreadable: String(error) }], setup: [], teardown: [] }];
  }
  const of = (name) => sections.filter(([key]) => key === name).flatMap(([, steps]) => steps ?? []);
  const [setup, teardown] = [of('setup'), of('teardown')];
  return sections
    .filter(([name]) => name !== 'setup' && name !== 'teardown')
    .map(([name, steps]) => ({ file, name, steps: steps ?? [], setup, teardown }));
}
