import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const NODE_GLOBALS = Object.fromEntries(
  [
    'process',
    'console',
    'URL',
    'URLSearchParams',
    'Buffer',
    'fetch',
    'performance',
    'setTimeout',
    'clearTimeout',
    'Response',
  ]
    .concat(['setInterval', 'clearInterval', 'AbortController', 'AbortSignal', 'TextEncoder', 'TextDecoder'])
    .map((name) => [name, 'readonly']),
);

/** A package is used by its name alone; what lies inside is its own business. */
const NO_DEEP_IMPORTS = {
  'no-restricted-imports': [
    'error',
    {
      patterns: [
        {
          group: [
            '@sparrow-search/*/*',
            '!@sparrow-search/*/package.json',
            '!@sparrow-search/engine/diagnostics',
            '!@sparrow-search/endpoints/openapi',
            '!@sparrow-search/http/*',
          ],
          message: 'Import the package itself.',
        },
        { group: ['**/packages/*/src/**', '**/packages/*/dist/**'], message: 'Import the package by its name.' },
      ],
    },
  ],
};

/** What asks name servers, in front of all requests, what each connected client is called. */
const NO_REPORTS = {
  'no-restricted-properties': [
    'error',
    { object: 'process', property: 'report', message: 'A report of Node looks up the names of connected clients.' },
  ],
};

const HTTP = ['hono', 'hono/*', '@hono/*', 'node:http'];

export default defineConfig(
  globalIgnores([
    '**/node_modules/',
    '**/dist/',
    '**/native/',
    'target/',
    'data/',
    '**/*.generated.ts',
    'packages/model-*/',
  ]),
  js.configs.recommended,
  {
    languageOptions: { globals: NODE_GLOBALS },
    rules: { ...NO_DEEP_IMPORTS, ...NO_REPORTS, eqeqeq: 'error', 'no-console': 'off' },
  },
  // What a browser runs.
  {
    files: ['examples/*/page/*.jsx'],
    languageOptions: { globals: { document: 'readonly' }, parserOptions: { ecmaFeatures: { jsx: true } } },
  },
  {
    files: ['packages/*/src/**/*.{ts,tsx}'],
    ignores: ['**/*.test.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-console': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // The compiler wants brackets for keys of index signatures.
      '@typescript-eslint/dot-notation': 'off',
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    files: ['test/**/*.ts', 'packages/*/src/**/*.test.ts', '*.ts'],
    extends: [tseslint.configs.recommended],
    rules: { '@typescript-eslint/no-explicit-any': 'off' },
  },
  {
    // The console runs in a browser.
    files: ['packages/console/src/**/*.{ts,tsx}'],
    ignores: ['**/*.test.ts'],
    rules: {
      // Numbers in sentences and in drawings.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  {
    // HTTP belongs to packages/http: what lies below must be usable without it.
    files: ['packages/engine/src/**/*.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [...HTTP, '@sparrow-search/*'] }] },
  },
  {
    files: ['packages/{endpoints,evaluation}/src/**/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [...HTTP, '@sparrow-search/*', '!@sparrow-search/engine'] }],
    },
  },
);
