import { LIST_RULE } from './parameters.js';
import { AGGREGATION_SCHEMAS } from './schemas/aggregations.js';
import { DECLARED } from './schemas/declared.generated.js';
import { DOCUMENT_SCHEMAS } from './schemas/documents.js';
import { INDEX_SCHEMAS } from './schemas/indices.js';
import { ADMINISTRATION_SCHEMAS, MODEL_SCHEMAS } from './schemas/models.js';
import { OPENAI_SCHEMAS } from './schemas/openai.js';
import { SEARCH_SCHEMAS } from './schemas/search.js';

/** The parts of the OpenAPI document that every operation shares. */

const CAUSE = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    reason: { type: ['string', 'null'] },
    caused_by: { $ref: '#/components/schemas/Cause' },
    stack_trace: { type: 'string', description: 'With `error_trace=true`.' },
  },
  // An error of a kind says what it is about: the index, the field, the line.
  additionalProperties: true,
};

interface Refusal {
  readonly description: string;
  readonly content: object;
}

/** An answer that refuses, with the error's body. */
function refusal(description: string): Refusal {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } };
}

/** An answer that says that something is missing, or no message: for some operations with a body of their own. */
function missing(description = 'What was asked for is not there.'): Refusal {
  return {
    description,
    content: {
      'application/json': { schema: { anyOf: [{ $ref: '#/components/schemas/Error' }, { type: 'object' }] } },
    },
  };
}

function common(name: string, schema: object, description: string): object {
  return { name, in: 'query', description, schema };
}

/** `components` of the document. */
export const COMPONENTS = {
  securitySchemes: {
    ApiKey: {
      type: 'apiKey',
      in: 'header',
      name: 'Authorization',
      description: '`ApiKey base64(id:api_key)`',
    },
    Basic: {
      type: 'http',
      scheme: 'basic',
      description: 'The id of an API key as the user, its secret as the password.',
    },
    Bearer: { type: 'http', scheme: 'bearer', description: '`Bearer base64(id:api_key)`: the same key as a token.' },
  },
  parameters: {
    pretty: common('pretty', { type: 'boolean' }, 'Lays the answer out for people.'),
    human: common('human', { type: 'boolean' }, 'Shows sizes and times of statistics for people, too.'),
    error_trace: common('error_trace', { type: 'boolean' }, 'Adds `stack_trace` to errors.'),
    filter_path: common(
      'filter_path',
      { type: 'string' },
      `Paths of the answer to keep, or with \`-\` to leave out. ${LIST_RULE}`,
    ),
    format: common(
      'format',
      { type: 'string', enum: ['json', 'yaml'] },
      'Kind of the answer; overrides the `Accept` header.',
    ),
  },
  schemas: {
    Cause: CAUSE,
    Error: {
      type: 'object',
      required: ['error'],
      properties: {
        error: { anyOf: [{ type: 'string' }, { $ref: '#/components/schemas/ErrorBody' }] },
        status: { type: 'integer' },
      },
    },
    ErrorBody: {
      type: 'object',
      required: ['root_cause', 'type', 'reason'],
      additionalProperties: true,
      properties: {
        ...CAUSE.properties,
        root_cause: { type: 'array', items: { $ref: '#/components/schemas/Cause' } },
      },
    },
    ...{ ...DECLARED, ...SEARCH_SCHEMAS, ...AGGREGATION_SCHEMAS, ...DOCUMENT_SCHEMAS },
    ...{ ...INDEX_SCHEMAS, ...MODEL_SCHEMAS, ...OPENAI_SCHEMAS, ...ADMINISTRATION_SCHEMAS },
  },
  responses: {
    BadRequest: refusal('The request is malformed, or asks for what cannot be.'),
    BadMessage: missing('It is no message of the protocol: an error of JSON-RPC says why.'),
    Unauthenticated: refusal('There is no valid API key.'),
    Forbidden: refusal('The API key does not allow this.'),
    NotFound: missing(),
    TimedOut: missing(),
    JobFailed: {
      description: 'It was refused, or failed on its way: `failures` says why, and the rest how far it came.',
      content: {
        'application/json': {
          schema: { anyOf: [{ $ref: '#/components/schemas/Error' }, { $ref: '#/components/schemas/ByQueryAnswer' }] },
        },
      },
    },
    Conflict: refusal('It conflicts with what is there.'),
    TooManyRequests: refusal('Too much is under way. Try again later.'),
    NotAcceptable: refusal('The body, or the answer that is wanted, is of a kind that is not spoken.'),
    TooLarge: refusal('The body is too long, as it came or decoded.'),
    Failed: refusal('It failed for a reason that is not the request: `reason` or the log of the server says why.'),
    BadGateway: refusal('The cluster behind the server refuses its credentials, or its answer cannot be used.'),
    Unavailable: refusal('It cannot be done now: the server is starting or stopping, or an index cannot be used.'),
    OutOfTime: refusal('The time ran out, and a part of the answer was not wanted.'),
  },
};
