/**
 * A symbolic graph of ONNX operators under construction.
 *
 * G1  Nodes are only appended, and a node's inputs exist before it: the node list is in topological order.
 * G2  Every tensor belongs to one graph and has one name in it. The caller chooses the names of inputs, initializers and
 *     outputs; all other names are generated.
 * G3  Equal constants are stored once.
 * G4  The nodes of a branch, one side of an `If`, may read every tensor that exists before it. Outside, only the results of the `If` can be read.
 *
 * Operators are added by the functions in `ops/`, which check shapes and call {@link Graph.emit}.
 */
import { DTYPES, type DType, type TensorData, toData } from "./dtype.ts";
import { GraphError } from "./errors.ts";
import type { PrimitiveName, Primitives } from "./primitives.ts";
import { formatShape, staticCount, type TensorShape } from "./shape.ts";

/** A value in a graph: the result of a node, an input, or an initializer. */
export interface Tensor {
  readonly graph: Graph;
  readonly name: string;
  readonly dtype: DType;
  readonly shape: TensorShape;
  /** The node that computes it; undefined for inputs and initializers. */
  readonly node: GraphNode | undefined;
}

/** One operator applied to tensors. `undefined` stands for an optional input that is left out. */
export interface GraphNode<P extends PrimitiveName = PrimitiveName> {
  readonly primitive: P;
  readonly name: string;
  readonly inputs: readonly (Tensor | undefined)[];
  readonly attributes: Readonly<Primitives[P]>;
  readonly outputs: readonly Tensor[];
}

/** Nodes that run only if a condition says so: one side of an `If`. */
export interface Branch {
  readonly nodes: readonly GraphNode[];
  readonly outputs: readonly Tensor[];
}

/** How a tensor is differentiated, whatever it is computed from. */
export interface OwnGradient {
  /** What it depends on; these tensors exist before it. */
  readonly inputs: readonly Tensor[];
  /** @returns the gradient of the loss with respect to each input, from that with respect to the tensor */
  readonly gradientsOf: (gradient: Tensor) => readonly Tensor[];
}

/** Element type and shape of a tensor that is to be created. */
export interface TensorType {
  readonly dtype: DType;
  readonly shape: TensorShape;
}

/** A constant tensor. Its data is part of the model, or (`data` undefined) is given when the session is created. */
export interface Initializer {
  readonly tensor: Tensor;
  readonly data: TensorData | undefined;
}

export class Graph {
  readonly name: string;
  readonly nodes: GraphNode[] = [];
  readonly inputs: Tensor[] = [];
  readonly initializers: Initializer[] = [];
  /** Results of the graph by their output names. */
  readonly outputs = new Map<string, Tensor>();
  /** Tensors that say themselves how they are differentiated, see `WithGradient`. */
  readonly ownGradients = new Map<Tensor, OwnGradient>();
  readonly #names = new Set<string>();
  readonly #constants = new Map<string, Tensor>();
  /** Where nodes are added: the graph's own, or those of the branch that is being built. */
  #open: GraphNode[] = this.nodes;
  /** What the nodes of finished branches made. */
  readonly #hidden = new Set<Tensor>();
  #made = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Declares a value that is fed at every run. */
  input(name: string, dtype: DType, shape: TensorShape): Tensor {
    const tensor = this.#tensor(name, dtype, shape, undefined);
    this.inputs.push(tensor);
    return tensor;
  }

  /**
   * Declares a constant of the model. Without `data` it is external: the session takes it from its
   * `externalData` under the same name, so that large weights never pass through protobuf.
   *
   * @throws GraphError if the name is in use, the shape is symbolic, or the data has the wrong length.
   */
  initializer(name: string, dtype: DType, shape: TensorShape, data?: TensorData): Tensor {
    const count = staticCount(shape);
    if (count === undefined || (data !== undefined && data.length !== count)) {
      const found = data === undefined ? "no data" : `${data.length} elements`;
      const problem = `its shape ${formatShape(shape)} must be static and filled by its data, but it has ${found}`;
      throw new GraphError(`add the initializer ${name}`, problem);
    }
    const tensor = this.#tensor(name, dtype, shape, undefined);
    this.initializers.push({ tensor, data });
    return tensor;
  }

  /** A small constant with the given values; `shape` defaults to one axis over all values. */
  constant(dtype: DType, values: readonly number[], shape: TensorShape = [values.length]): Tensor {
    const key = `${dtype}${formatShape(shape)}:${values.join(",")}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const tensor = this.initializer(this.#freshName("constant"), dtype, shape, toData(dtype, values));
    this.#constants.set(key, tensor);
    return tensor;
  }

  /** A constant without axes. */
  scalar(dtype: DType, value: number): Tensor {
    return this.constant(dtype, [value], []);
  }

  /** The values of a constant of this graph; gradient rules use this to read axes and bounds. */
  constantValues(tensor: Tensor): number[] {
    const known = this.initializers.find((initializer) => initializer.tensor === tensor);
    if (known?.data === undefined) {
      throw new GraphError(`read the constant ${tensor.name}`, "its data is not part of the graph");
    }
    return Array.from(known.data, Number);
  }

  /** Declares a tensor as a result of the graph. */
  output(name: string, tensor: Tensor): void {
    if (tensor.graph !== this || this.outputs.has(name)) {
      const problem =
        tensor.graph === this
          ? "the graph has an output of this name"
          : `${tensor.name} belongs to another graph`;
      throw new GraphError(`add the output ${name}`, problem);
    }
    if (this.#hidden.has(tensor)) throw hiddenError(`add the output ${name}`, tensor);
    this.outputs.set(name, tensor);
  }

  /** Appends a node; meant for the functions in `ops/`, which have checked the inputs. */
  emit<P extends PrimitiveName>(
    primitive: P,
    inputs: readonly (Tensor | undefined)[],
    attributes: Primitives[P],
    outputs: readonly TensorType[],
  ): GraphNode<P> {
    for (const input of inputs) {
      if (input !== undefined && input.graph !== this) {
        const problem = `its inputs must belong to the graph ${this.name}, but ${input.name} belongs to another one`;
        throw new GraphError(`apply ${primitive}`, problem);
      }
      if (input !== undefined && this.#hidden.has(input)) throw hiddenError(`apply ${primitive}`, input);
    }
    const made: Tensor[] = [];
    const node: GraphNode<P> = {
      primitive,
      name: this.#freshName(primitive),
      inputs: [...inputs],
      attributes,
      outputs: made,
    };
    // The type of the node list does not record each node's primitive; rules are selected by the field `primitive`.
    const stored = node as unknown as GraphNode;
    outputs.forEach((type, at) => {
      made.push(this.#tensor(`${node.name}:${at}`, type.dtype, type.shape, stored));
    });
    this.#open.push(stored);
    return node;
  }

  /**
   * Builds one side of an `If`; meant for that function.
   * @param build adds nodes, which are in its argument from then on, and returns the results @returns both (G4)
   */
  branch(build: (nodes: readonly GraphNode[]) => readonly Tensor[]): Branch {
    const outer = this.#open;
    const nodes: GraphNode[] = [];
    this.#open = nodes;
    try {
      return { nodes, outputs: build(nodes) };
    } finally {
      this.#open = outer;
      for (const node of nodes) for (const output of node.outputs) this.#hidden.add(output);
    }
  }

  #tensor(name: string, dtype: DType, shape: TensorShape, node: GraphNode | undefined): Tensor {
    if (this.#names.has(name) || name === "") {
      const problem = name === "" ? "its name is empty" : `the name ${JSON.stringify(name)} is in use`;
      throw new GraphError("add a tensor", problem);
    }
    if (DTYPES[dtype] === undefined) throw new GraphError(`add ${name}`, `its type ${dtype} is unknown`);
    this.#names.add(name);
    return { graph: this, name, dtype, shape: [...shape], node };
  }

  #freshName(stem: string): string {
    this.#made += 1;
    return `${stem}_${this.#made}`;
  }
}

function hiddenError(action: string, tensor: Tensor): GraphError {
  return new GraphError(
    action,
    `${tensor.name} is made in a branch of an If, which it must be a result of to be read outside`,
  );
}
