/** JSON Schema as it stands in the OpenAPI document, and short ways to write it. */
export type Schema = Readonly<Record<string, unknown>>;

export type Schemas = Readonly<Record<string, Schema>>;

const described = (schema: Schema, description: string | undefined): Schema =>
  description === undefined ? schema : { ...schema, description };

export const text = (description?: string): Schema => described({ type: 'string' }, description);
export const int = (description?: string): Schema => described({ type: 'integer' }, description);
export const num = (description?: string): Schema => described({ type: 'number' }, description);
export const bool = (description?: string): Schema => described({ type: 'boolean' }, description);
/** A value of a field. */
export const scalar: Schema = { type: ['string', 'number', 'boolean', 'null'] };
/** A value of any kind. */
export const any = (description?: string): Schema => described({}, description);
/** An object whose members are the user's own. */
export const open = (description?: string): Schema => described({ type: 'object' }, description);
export const list = (items: Schema, description?: string): Schema => described({ type: 'array', items }, description);
/** An object by names that somebody gave. */
export const map = (values: Schema, description?: string): Schema =>
  described({ type: 'object', additionalProperties: values }, description);
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const either = (...anyOf: readonly Schema[]): Schema => ({ anyOf });
export const one = (values: readonly string[], description?: string): Schema =>
  described({ type: 'string', enum: values }, description);
export const nullable = (schema: Schema): Schema => ({ ...schema, type: [schema['type'], 'null'] });
/** One, or several. */
export const several = (schema: Schema): Schema => either(schema, list(schema));

/** What an object holds whose members have names. */
export type ObjectSchema = Schema & { readonly properties: Schemas };

/** An object of these members; those that are named are always there. */
export function object(properties: Schemas, required: readonly string[] = [], description?: string): ObjectSchema {
  const needed = required.length === 0 ? {} : { required };
  return { ...described({ type: 'object', ...needed }, description), properties };
}
