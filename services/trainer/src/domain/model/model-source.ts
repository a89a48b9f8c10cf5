/** The port to where pretrained models come from. */
import type { PretrainedModel } from "@hone/config";

export interface FindModelOptions {
  readonly signal: AbortSignal;
  /** Told now and then while files are fetched. */
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

export interface ModelSource {
  /**
   * The folder of a model: the one named, or that of the hub's repository, which is fetched first.
   * @throws {TerminalError} when there is no such model, or it may not be read.
   * @throws {RetryableError} when the hub is away.
   */
  folderOf(model: Pick<PretrainedModel, "path" | "revision">, options: FindModelOptions): Promise<string>;
}
