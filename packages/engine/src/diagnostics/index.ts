// Warnings about requests that name a field or an inference endpoint which does not exist. Such a request is carried out, as in
// Elasticsearch, which does not warn. The server, the command line, the console and the library share this.
export * from './named-fields.js';
export { near, similarity } from './near.js';
export { holdsMappings, unknownEndpoints } from './unknown-endpoints.js';
export { foundNothing, unknownFields } from './unknown-fields.js';
