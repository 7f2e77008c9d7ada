export {
  DEFAULTS,
  FUSIONS,
  QueryLists,
  WINDOW,
  weightOf,
  type Fusion,
  type Kind,
  type List,
  type RankedHit,
  type Setting,
} from './fusion.js';
export { logisticFit, type Line, type Observation } from './logistic.js';
export { ndcg, recall, type Grades } from './ranking-metrics.js';
export {
  FEWEST,
  FOLDS,
  REPEATS,
  RESAMPLES,
  SEED,
  settingsFor,
  tune,
  type Choice,
  type Difference,
  type Reason,
  type Tuning,
} from './tuning.js';
