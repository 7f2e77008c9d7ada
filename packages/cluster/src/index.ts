export { type ClusterLog, ClusterSearchEngine } from './cluster-engine.js';
export {
  type Migrated,
  type MigrationOptions,
  type MigrationProgress,
  MigrationError,
  migrate,
} from './migration/migrate.js';
export { type Product, UnsupportedClusterError } from './product.js';
export { Conflict, type Shared, type SharedState, type Version } from './shared-state.js';
export { type ClusterOptions, ClusterSettingsError } from './transport.js';
