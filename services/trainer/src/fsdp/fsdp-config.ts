/** Configuration of an engine on PyTorch workers, and of the machine that runs them. */
import type { Logger } from "@hone/telemetry";
import type { EngineConfig } from "../engine/engine-config.ts";
import type { TorchNodes } from "./torch-nodes.ts";

/** Number type in which layers compute; weights, sums of gradients and the optimizer are float32. */
export type ComputeType = "float32" | "bfloat16";

export type TorchDevice = "cpu" | "cuda";

export interface FsdpEngineConfig extends EngineConfig {
  /** Processes that share the model, one per GPU. */
  readonly worldSize: number;
  readonly computeType: ComputeType;
  /** Layers keep only their inputs and are computed again in the backward pass (activation checkpointing). */
  readonly recomputesLayers: boolean;
  /** Weights, gradients and the optimizer stay in the host's memory. */
  readonly offloadsToHost: boolean;
  /**
   * A folder that this engine may make and remove, where workers of every node find the weights that training starts from.
   * @default one of the system's, for workers of this node
   */
  readonly startFolder?: string;
}

/** The nodes beside this one that workers are on. */
export interface OtherNodes {
  readonly others: TorchNodes;
}

/** How this machine runs workers. */
export interface TorchHost {
  /** The interpreter that has PyTorch. */
  readonly python: string;
  readonly device: TorchDevice;
  /** Release of PyTorch, such as `2.13.0`. */
  readonly torchVersion: string;
  /** Threads of each worker on the host. */
  readonly threadsPerWorker: number;
  /** Environment of the workers. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Deadline from starting a group until its hello. */
  readonly startDeadlineMs: number;
  /** Deadline of one call; a load or an update of a large model takes minutes. */
  readonly callDeadlineMs: number;
  /** Absent = workers are on this node only. */
  readonly nodes?: OtherNodes;
  readonly logger: Logger;
}
