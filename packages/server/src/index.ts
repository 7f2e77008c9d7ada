export { createApp } from './app.js';
export { type AppOptions, type Services } from './application.js';
export { type Config, ConfigError, describeSettings, readConfig } from './config.js';
export { type LogLevel, type Logger, createLogger } from './log.js';
export { ENDPOINTS } from './routes/table.js';
export type { Endpoint } from './routes/types.js';
export { type IssuedKey, KeyStore } from './security/key-store.js';
export { type OpenEngine, type ReadyServer, type RunningServer, startServer } from './server.js';
export { parameter } from './routes/parameters.js';
