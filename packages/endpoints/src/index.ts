export {
  HttpError,
  RoutingError,
  UnusablePathError,
  describeError,
  type ErrorCode,
  type ErrorDetails,
} from './errors.js';
export { reasonOf, type Explanation, type Reason } from './explanations.js';
export { exactValue, mayHoldLong, parseJson, sizeOfJson, writeJson, type Json } from './json-text.js';
export { leaves, type Leaf, type Properties, type Property } from './mapped-fields.js';
export { KEY_REQUESTS } from './openapi/schemas/keys.js';
export { rootReason } from './root-cause.js';
export { elsewhere } from './routes/unsupported.js';
export { listNone } from './routes/empty-lists.js';
export { SPARSE_PATH, isOpenAiPath } from './routes/openai-paths.js';
export { changesNothing, checkParameter, millisOf, parameter } from './routes/parameters.js';
export { ENDPOINTS, honoPath, routesByPath, type Route } from './routes/table.js';
export {
  COMMON_PARAMS,
  isReadLate,
  type Endpoint,
  type LocalOperation,
  type Method,
  type Texts,
} from './routes/types.js';
export { INTERFACE_VERSION, VERSION } from './version.js';
export { warningTexts } from './warning-texts.js';
