// What is said about requests that are carried out and yet are not what somebody meant: names that are not there. Elasticsearch says
// nothing of them. The server, the command line and the library share it.
export * from './named-fields.js';
export { near, similarity } from './near.js';
export { holdsMappings, unknownEndpoints } from './unknown-endpoints.js';
export { foundNothing, unknownFields } from './unknown-fields.js';
