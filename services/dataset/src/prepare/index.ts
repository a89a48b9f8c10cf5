/** Turns public data sets, in the layouts of their publishers, into files of rows that a run trains on. */

export { PREPARATIONS, type PreparationName } from "./preparations.ts";
export {
  filesToPrepare,
  type PreparedSplit,
  type PrepareOptions,
  prepareDataset,
} from "./prepare-dataset.ts";
