// Writes files of TypeScript from what the addon declares: the engine's operations, the actions that privileges are granted for, and
// what the bodies of requests hold.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { ADDON, at } from './paths.mjs';
import { StepFailed, output } from './process.mjs';

const HEADER = `// Generated from the declarations in crates by scripts/lib/declarations.mjs: do not edit.
`;

/** The generated files, and what makes their texts of what an addon declares, as JSON. */
export const FILES = [
  { file: at('packages', 'engine', 'src', 'operations.generated.ts'), textOf: operationsFile },
  { file: at('packages', 'endpoints', 'src', 'openapi', 'schemas', 'declared.generated.ts'), textOf: schemasFile },
];

const rows = (named) =>
  Object.entries(named)
    .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
    .join('');

/** The operations and the actions. */
function operationsFile(declared) {
  const { operations, actions } = JSON.parse(declared);
  const names = (named) =>
    Object.keys(named)
      .map((name) => `\n  | ${JSON.stringify(name)}`)
      .join('');
  return `${HEADER}import type { DeclaredAction, DeclaredOperation } from './operations.js';

/** The name of an operation. */
export type Operation =${names(operations)};

/** The name of an action that privileges are granted for, as the sentence of a refusal gives it. */
export type Action =${names(actions)};

/**
 * Every operation an engine answers, as Rust declares it next to the function that carries it out. The HTTP layer's route table maps
 * methods and paths to these names.
 */
export const OPERATIONS: Readonly<Record<Operation, DeclaredOperation>> = {
${rows(operations)}};

/** Every action that privileges are granted for. */
export const ACTIONS: Readonly<Record<Action, DeclaredAction>> = {
${rows(actions)}};
`;
}

/** What the bodies of requests hold: schemas of the OpenAPI document by their names, each member in a line. */
function schemasFile(declared) {
  const { schemas } = JSON.parse(declared);
  const written = ({ properties, ...schema }) => {
    const text = JSON.stringify(schema);
    return properties === undefined ? text : `${text.slice(0, -1)},"properties":{\n${rows(properties)}  }}`;
  };
  const all = Object.entries(schemas).map(([name, schema]) => `  ${name}: ${written(schema)},\n`);
  return `${HEADER}import type { ObjectSchema, Schemas } from './schema.js';

/** What parts of requests hold, as Rust declares it next to the functions that read them. */
export const DECLARED: Schemas & Readonly<Record<'InferenceEndpointRequest' | 'Pipeline', ObjectSchema>> = {
${all.join('')}};
`;
}

/** Rewrites the generated files for which the built addon declares something else. */
export function writeDeclarations() {
  // In a process of its own: the addon stays loaded in the one that loads it, and could not be replaced everywhere.
  const script = 'process.stdout.write(require(process.argv[1]).declared())';
  const declared = output(process.execPath, ['-e', script, ADDON]);
  if (declared === undefined) throw new StepFailed(`the addon ${ADDON} cannot be loaded`);
  for (const { file, textOf } of FILES) {
    const text = textOf(declared);
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
  }
}
