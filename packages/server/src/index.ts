export { ENDPOINTS, type Endpoint, parameter } from '@sparrow-search/endpoints';
export { openapi } from '@sparrow-search/endpoints/openapi';
export { logisticFit, ndcg, recall } from '@sparrow-search/evaluation';
export {
  type AppOptions,
  type PartOptions,
  Rest,
  type RestRequest,
  type RestResponse,
  ScriptStore,
  type ServerEnv,
  type Services,
  createApp,
} from '@sparrow-search/http';
export { type IssuedKey, KeyStore } from '@sparrow-search/http/keys';
export { type LogLevel, type Logger, createLogger } from '@sparrow-search/http/log';
export { type OpenEngine, type ReadyServer, type RunningServer, startServer } from '@sparrow-search/http/serve';
export { type Config, ConfigError, describeSettings, readConfig } from '@sparrow-search/http/settings';
