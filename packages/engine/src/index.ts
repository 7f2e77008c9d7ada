export { findBinding, type Binding } from './binding.js';
export {
  checkData,
  checkRepository,
  repairData,
  type Problem,
  type Repair,
  type Report,
  type RepositoryProblem,
  type RepositoryReport,
} from './check.js';
export { near } from './diagnostics/near.js';
export { BindingError, EngineError } from './errors.js';
export { fileProblem } from './file-problem.js';
export { holdsForeignFiles, makePrivateFolder } from './foreign-files.js';
export type { BulkOptions, BulkProgress, BulkResult, Rejected } from './library/bulk.js';
export type { Call, CallOptions } from './library/caller.js';
export type { DenseVector, EmbedOptions, SparseVector } from './library/embed.js';
export { SparrowError } from './library/error.js';
export { type OpenOptions, Sparrow } from './library/sparrow.js';
export { Index, type ChangeOptions, type WalkOptions, type WriteOptions } from './library/typed-index.js';
export type {
  CreateIndexRequest as IndexDefinition,
  Mapping,
  Properties,
  Property,
  Query,
  Retriever,
  SearchRequest,
} from './library/requests.generated.js';
export type { Hit, Json, Refresh, SearchResponse, Written } from './library/types.js';
export {
  type CalibratedList,
  type CalibrationMap,
  type FusionMethod,
  NORMALIZERS,
  type Normalizer,
  type NumberedHits,
  type NumberedList,
  type Ranked,
  type RankedList,
  type ShortForm,
  expandShortForm,
  fuseCalibrated,
  fuseLists,
  fuseNumbered,
} from './fuse.js';
export { matchesGlob } from './glob.js';
export { embeddedModels, modelDirectories } from './models.js';
export { NativeSearchEngine, type NativeEngineOptions } from './native-engine.js';
export type { ModelPhase, Phases } from './phases.js';
export { ADDON_FILE, platformName, runtimeLibraryNames } from './platform.js';
export {
  ACTIONS,
  OPERATIONS,
  type Action,
  type DeclaredAction,
  type DeclaredOperation,
  type Operation,
} from './operations.js';
export type { Cancel, EngineReply, EngineRequest, SearchEngine } from './search-engine.js';
export { type Shape, type ShapeProblem, freeAnswer, shapeAnswer } from './shape.js';
export { Turns } from './turns.js';
export { unterminated } from './unterminated.js';
export { zstdCompress, zstdPieces } from './zstd.js';
