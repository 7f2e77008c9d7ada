export { createApp } from './app.js';
export type { ServerEnv } from './env.js';
export { Rest, type PartOptions, type RestRequest, type RestResponse } from './in-process/rest.js';
export { ScriptStore } from './search-templates/script-store.js';
export type { AppOptions, Services } from './services.js';
