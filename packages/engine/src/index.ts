export { findBinding, type Binding } from './binding.js';
export { checkData, repairData, type Problem, type Repair, type Report } from './check.js';
export { BindingError, EngineError } from './errors.js';
export { NativeSearchEngine, type NativeEngineOptions } from './native-engine.js';
export { ADDON_FILE, platformName, runtimeLibraryNames } from './platform.js';
export {
  OPERATIONS,
  type Cancel,
  type EngineReply,
  type EngineRequest,
  type Operation,
  type SearchEngine,
} from './search-engine.js';
export { type Shape, shapeAnswer } from './shape.js';
export { zstdCompress, zstdPieces } from './zstd.js';
