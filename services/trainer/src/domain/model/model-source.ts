/** The port through which pretrained models are found. */
import type { PretrainedModel } from "@hone/config";

export interface FindModelOptions {
  /** The key of the run file that names the model, for errors. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Called now and then while files are fetched. */
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

export interface ModelSource {
  /**
   * The folder of a model: the one that `path` names, or that of a repository of the hub, which is fetched first.
   * @throws {TerminalError} when there is no such model, or when it may not be read.
   * @throws {RetryableError} when the hub cannot be reached.
   */
  folderOf(model: Pick<PretrainedModel, "path" | "revision">, options: FindModelOptions): Promise<string>;
}
