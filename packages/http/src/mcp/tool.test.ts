import { expect, it } from 'vitest';
import { z } from 'zod';

import { tool } from './tool.js';

it('describes its arguments once in each form that is asked for', () => {
  const input = z.object({ n: z.number().nullable() });
  let made = 0;
  const standard = input['~standard'];
  const counted = (make: typeof standard.jsonSchema.input): typeof make => {
    return (options) => {
      made += 1;
      return make(options);
    };
  };
  const jsonSchema = { input: counted(standard.jsonSchema.input), output: counted(standard.jsonSchema.output) };
  Object.defineProperty(input, '~standard', { value: { ...standard, jsonSchema } });
  const output = z.object({});
  tool({ name: 'a', title: 'a', description: 'a', input, output, effect: 'read', run: () => Promise.resolve({}) });

  const inForm = (target: string): object => input['~standard'].jsonSchema.input({ target } as never);
  expect(inForm('draft-07')).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#' });
  expect(inForm('draft-2020-12')).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema' });
  expect(inForm('draft-07')).toBe(inForm('draft-07'));
  expect(made).toBe(2);
});
