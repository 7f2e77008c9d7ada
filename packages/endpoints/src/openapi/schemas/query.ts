import { QUERIES, SHARED } from './queries.generated.js';
import { type Schemas, oneMember } from './schema.js';

/** A script: its text, or an object. */
export const script = SHARED.Script;

export const QUERY_SCHEMAS: Schemas = {
  Query: oneMember(QUERIES, 'One query: an object with one member, whose name says which.'),
  ...SHARED,
};
