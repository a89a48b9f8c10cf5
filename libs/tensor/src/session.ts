/**
 * Runs a graph on onnxruntime's CPU kernels.
 *
 * A run blocks the calling thread until it is done, although it returns a promise; engines therefore use a worker thread.
 * Inputs are not copied, so an input array may be updated in place between runs; outputs are copied once.
 */
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import type { DType, TensorData } from "./dtype.ts";
import { GraphError, SessionError } from "./errors.ts";
import type { Graph, Tensor } from "./graph.ts";
import { serialize } from "./serialize.ts";
import { formatShape } from "./shape.ts";

export interface SessionOptions {
  /** Threads that share one operator; default 0, which lets onnxruntime use every core. */
  readonly intraOpThreads?: number;
  /**
   * Microseconds for which an idle thread of a run busy-waits for the next operator before it sleeps (default 0). Waiting
   * shortens runs of many operators. Between runs all threads sleep.
   */
  readonly spinUs?: number;
  /** Data of the initializers that were declared without data, by name. It is read until the session is created. */
  readonly externalData?: Readonly<Record<string, TensorData>>;
  /**
   * Whether onnxruntime rewrites the graph before it runs it. Without this, a session of a graph with branches is created sooner, and runs as
   * fast if the graph has nothing to be rewritten. @default true
   */
  readonly isRewritten?: boolean;
  /** Path prefix for a profile (JSON trace events), which is written when the session is released. */
  readonly profilePrefix?: string;
}

/** A value for an input: data with its run-time shape. */
export interface Feed {
  readonly dtype: DType;
  readonly data: TensorData;
  readonly shape: readonly number[];
}

/** A result of a run. */
export interface Fetched {
  readonly data: TensorData;
  readonly shape: readonly number[];
}

export class GraphSession {
  readonly #session: InferenceSession;
  readonly #inputs: ReadonlyMap<string, Tensor>;

  private constructor(session: InferenceSession, inputs: ReadonlyMap<string, Tensor>) {
    this.#session = session;
    this.#inputs = inputs;
  }

  /** Serializes the graph, lets onnxruntime optimize it, and prepares it for running. */
  static async create(graph: Graph, options: SessionOptions = {}): Promise<GraphSession> {
    const externalData = graph.initializers
      .filter((initializer) => initializer.data === undefined)
      .map(({ tensor }) => {
        const data = options.externalData?.[tensor.name];
        if (data === undefined) {
          throw new GraphError(
            "create a session",
            `no data is given for the external initializer ${tensor.name}`,
          );
        }
        return { path: tensor.name, data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
      });
    const { spinUs = 0, isRewritten = true } = options;
    try {
      const session = await InferenceSession.create(serialize(graph), {
        executionProviders: ["cpu"],
        graphOptimizationLevel: isRewritten ? "all" : "disabled",
        intraOpNumThreads: options.intraOpThreads ?? 0,
        interOpNumThreads: 1,
        executionMode: "sequential",
        enableMemPattern: false,
        extra: {
          session: {
            intra_op:
              spinUs > 0
                ? { allow_spinning: "1", spin_duration_us: String(spinUs) }
                : { allow_spinning: "0" },
            force_spinning_stop: "1",
          },
        },
        ...(externalData.length > 0 ? { externalData } : {}),
        ...(options.profilePrefix === undefined
          ? {}
          : { enableProfiling: true, profileFilePrefix: options.profilePrefix }),
      });
      return new GraphSession(session, new Map(graph.inputs.map((input) => [input.name, input])));
    } catch (error) {
      throw new SessionError(`create a session of graph ${graph.name}`, error);
    }
  }

  /**
   * Runs the graph once.
   *
   * @param feeds a value for every input of the graph.
   * @param outputs names of the outputs to compute; all by default.
   */
  async run(
    feeds: Readonly<Record<string, Feed>>,
    outputs: readonly string[] = this.#session.outputNames,
  ): Promise<Record<string, Fetched>> {
    const values: Record<string, OrtTensor> = {};
    for (const name of this.#session.inputNames) {
      values[name] = this.#toOrt(name, feeds[name]);
    }
    try {
      const results = await this.#session.run(values, outputs);
      return Object.fromEntries(outputs.map((name) => [name, fromOrt(results[name]!)]));
    } catch (error) {
      throw new SessionError("run a graph", error);
    }
  }

  /** Frees the session's memory; it cannot run afterwards. */
  async release(): Promise<void> {
    this.#session.endProfiling();
    await this.#session.release();
  }

  #toOrt(name: string, feed: Feed | undefined): OrtTensor {
    const input = this.#inputs.get(name);
    if (feed === undefined || input === undefined || feed.dtype !== input.dtype) {
      const found = feed === undefined ? "is missing" : `is ${feed.dtype}`;
      throw new GraphError("run a graph", `the input ${name} must be ${input?.dtype}, but ${found}`);
    }
    const isFitting =
      feed.shape.length === input.shape.length &&
      input.shape.every((dim, axis) => typeof dim === "string" || dim === feed.shape[axis]);
    if (!isFitting) {
      const rule = `the input ${name} must have the shape ${formatShape(input.shape)}`;
      throw new GraphError("run a graph", `${rule}, but has ${formatShape(feed.shape)}`);
    }
    return new OrtTensor(feed.dtype, feed.data, feed.shape);
  }
}

function fromOrt(value: OrtTensor): Fetched {
  return { data: value.data as TensorData, shape: value.dims };
}
