/**
 * The decoder: one definition for training and generation, and for the families Llama (https://arxiv.org/abs/2302.13971),
 * Qwen2 (https://arxiv.org/abs/2407.10671) and Qwen3 (https://arxiv.org/abs/2505.09388), which differ in biases and norms.
 *
 * Letters: B rows, T tokens of a row, C hidden size, H query heads, G key/value heads, D head size, F feed-forward
 * width, V vocabulary. Training and generation differ in which tokens a token may see and where earlier keys and values come
 * from; the caller's `attend` decides this.
 */
import {
  Add,
  Cast,
  Cos,
  type Dim,
  FusedMatMul,
  Gather,
  type Graph,
  MatMul,
  Mul,
  QuickGelu,
  Reshape,
  RotaryEmbedding,
  SimplifiedLayerNormalization,
  Sin,
  type Tensor,
  Transpose,
  Unsqueeze,
} from "@hone/tensor";
import { rotaryFactor, rotaryFrequencies } from "./attention/rotary.ts";
import { ModelSpecError } from "./errors.ts";
import { adapterParameter, LORA_TARGETS, type LoraSpec } from "./model/lora.ts";
import type { ModelSpec } from "./model/model-spec.ts";
import {
  EMBEDDING,
  FINAL_NORM,
  hasBias,
  headParameter,
  layerBias,
  layerParameter,
  type ParameterInfo,
  VALUE_BIAS,
  VALUE_HEAD,
} from "./model/parameters.ts";

/** The parameters as tensors of a graph, by name. */
export type WeightTensors = Readonly<Record<string, Tensor>>;

/**
 * Attention of one layer.
 *
 * @param q [B, T, H, D], k and v [B, T, G, D]: q and k are already normalised and rotated by their positions. With `readers`,
 *   the q of the last layer has only their queries, [1, R, H, D].
 * @returns [B, T, H*D], or [1, R, H*D]: for every query head, the weighted sum of the values that it may see.
 */
export type Attend = (layer: number, q: Tensor, k: Tensor, v: Tensor) => Tensor;

/** The product of x [..., in] with the named parameter of layout [out, in]: [..., out]. */
export type Linear = (x: Tensor, name: string) => Tensor;

/** The tokens: either ids [B, T], which the graph looks up, or their rows of the embedding table. */
export type TokenInput =
  | { readonly tokenIds: Tensor }
  /** [B, T, C]. Training looks tokens up outside the graph, where the gradient of a lookup costs less. */
  | { readonly embedded: Tensor };

export type TransformerInputs = TokenInput & {
  /** [B, T] int64: position of each token in its sequence. */
  readonly positionIds: Tensor;
  readonly weights: WeightTensors;
  /** Adapters whose tensors are in the weights, in addition to the model's parameters; absent = none. */
  readonly lora?: LoraSpec | undefined;
  readonly attend: Attend;
  /**
   * Whether a weight is the left operand of its product, W x^T. Default: the right one, x W^T. See {@link leftProduct}.
   */
  readonly isWeightLeft?: boolean;
  /** How the projections are computed. @default in float32, with the weights */
  readonly linear?: Linear | undefined;
  /**
   * [R] tokens whose results are wanted, for inputs of one row; default all tokens. The last layer then computes keys and
   * values for all tokens and everything else only for these: its result and that of the decoder are [1, R, C].
   */
  readonly readers?: Tensor;
};

/** Declares parameters as graph inputs, so that the next run sees arrays that were updated in place. */
export function weightInputs(graph: Graph, parameters: readonly ParameterInfo[]): WeightTensors {
  return Object.fromEntries(parameters.map(({ name, shape }) => [name, graph.input(name, "float32", shape)]));
}

/** Declares parameters as external initializers, which onnxruntime prepacks when the session is made. */
export function weightInitializers(graph: Graph, parameters: readonly ParameterInfo[]): WeightTensors {
  return Object.fromEntries(
    parameters.map(({ name, shape }) => [name, graph.initializer(name, "float32", shape)]),
  );
}

/** The steps of the decoder, each [B, T, C] -> [B, T, C] except with `readers`. A step that is added twice is computed twice. */
export interface Decoder {
  /** The input of the first layer. */
  readonly start: Tensor;
  layer(index: number, x: Tensor): Tensor;
  /** Applies the norm after the last layer. */
  finish(x: Tensor): Tensor;
}

/** The decoder of a graph, for callers that add its steps themselves. */
export function decoderOf(graph: Graph, spec: ModelSpec, inputs: TransformerInputs): Decoder {
  const { weights } = inputs;
  const angles = rotaryAngles(graph, spec, inputs.positionIds);
  const { readers } = inputs;
  return {
    start: "embedded" in inputs ? inputs.embedded : Gather(parameter(weights, EMBEDDING), inputs.tokenIds),
    layer(index, x) {
      const isRead = readers !== undefined && index === spec.numLayers - 1;
      const read: Read = (tensor) => (isRead ? Gather(tensor, readers, 1) : tensor);
      const attended = Add(read(x), attentionBlock(spec, index, x, inputs, angles, read));
      return Add(attended, feedForwardBlock(spec, index, attended, inputs));
    },
    finish: (x) => norm(spec, x, parameter(weights, FINAL_NORM)),
  };
}

/** Adds the decoder to the graph. @returns the hidden states after the last norm, [B, T, C], or only those of the readers. */
export function buildTransformer(graph: Graph, spec: ModelSpec, inputs: TransformerInputs): Tensor {
  const decoder = decoderOf(graph, spec, inputs);
  let x = decoder.start;
  for (let layer = 0; layer < spec.numLayers; layer++) x = decoder.layer(layer, x);
  return decoder.finish(x);
}

/**
 * Logits over the vocabulary, [..., V], of hidden states [..., C]; call it for the wanted positions only.
 * @param linear how the product is computed. @default in float32, with the weights
 */
export function buildHead(
  spec: ModelSpec,
  hidden: Tensor,
  weights: WeightTensors,
  linear: Linear = floatLinear(weights),
): Tensor {
  return linear(hidden, headParameter(spec));
}

/** The value [N] that a value head computes from each hidden state [N, C]. */
export function buildValue(hidden: Tensor, weights: WeightTensors): Tensor {
  const value = floatLinear(weights)(hidden, VALUE_HEAD);
  return Reshape(Add(value, parameter(weights, VALUE_BIAS)), [-1]);
}

interface Angles {
  /** [B, T, D/2] */
  readonly cosines: Tensor;
  readonly sines: Tensor;
}

/** Selects from a tensor [B, T, ...] the tokens whose results a layer must compute. */
type Read = (tensor: Tensor) => Tensor;

/** angle[b, t, i] = position[b, t] * frequency[i]. Some scalings also multiply what is rotated by a factor. */
function rotaryAngles(graph: Graph, spec: ModelSpec, positionIds: Tensor): Angles {
  const rope = { theta: spec.ropeTheta, scaling: spec.ropeScaling };
  const positions = Unsqueeze(Cast(positionIds, "float32"), [2]);
  const angles = Mul(positions, graph.constant("float32", rotaryFrequencies(rope, spec.headDim)));
  const factor = rotaryFactor(rope);
  const scaled = (x: Tensor) => (factor === 1 ? x : Mul(x, factor));
  return { cosines: scaled(Cos(angles)), sines: scaled(Sin(angles)) };
}

function attentionBlock(
  spec: ModelSpec,
  layer: number,
  x: Tensor,
  inputs: TransformerInputs,
  angles: Angles,
  read: Read,
): Tensor {
  const { weights, attend } = inputs;
  const at = (part: string) => parameter(weights, layerParameter(layer, part));
  const { numHeads, numKeyValueHeads, headDim } = spec;
  const normed = norm(spec, x, at("input_layernorm"));

  const projectHeads = (input: Tensor, part: string, heads: number) => {
    const [rows, tokens] = input.shape as [Dim, Dim, Dim];
    return Reshape(project(spec, layer, input, inputs, part), [rows, tokens, heads, headDim]);
  };
  const turn = (perHead: Tensor, heads: number, { cosines, sines }: Angles) => {
    const [rows, tokens] = perHead.shape as [Dim, Dim, ...Dim[]];
    const flat = Reshape(perHead, [rows, tokens, heads * headDim]);
    const turned = RotaryEmbedding(flat, cosines, sines, heads);
    return Reshape(turned, [rows, tokens, heads, headDim]);
  };
  const normHeads = (perHead: Tensor, part: string) =>
    spec.hasQkNorm ? norm(spec, perHead, at(part)) : perHead;

  const q = turn(
    normHeads(projectHeads(read(normed), "self_attn.q_proj", numHeads), "self_attn.q_norm"),
    numHeads,
    { cosines: read(angles.cosines), sines: read(angles.sines) },
  );
  const k = turn(
    normHeads(projectHeads(normed, "self_attn.k_proj", numKeyValueHeads), "self_attn.k_norm"),
    numKeyValueHeads,
    angles,
  );
  const v = projectHeads(normed, "self_attn.v_proj", numKeyValueHeads);
  return project(spec, layer, attend(layer, q, k, v), inputs, "self_attn.o_proj");
}

/** down(silu(gate(x)) * up(x)), SwiGLU (https://arxiv.org/abs/2002.05202). */
function feedForwardBlock(spec: ModelSpec, layer: number, x: Tensor, inputs: TransformerInputs): Tensor {
  const normed = norm(spec, x, parameter(inputs.weights, layerParameter(layer, "post_attention_layernorm")));
  if (inputs.isWeightLeft && inputs.lora === undefined) return leftFeedForward(spec, layer, normed, inputs);
  const through = (input: Tensor, part: string) => project(spec, layer, input, inputs, part);
  const gated = Mul(QuickGelu(through(normed, "mlp.gate_proj")), through(normed, "mlp.up_proj"));
  return through(gated, "mlp.down_proj");
}

/** The same feed-forward, but with transposed intermediate values [B, F, T], so that only the result must be transposed back. */
function leftFeedForward(spec: ModelSpec, layer: number, normed: Tensor, inputs: TransformerInputs): Tensor {
  const weightOf = (part: string) => parameter(inputs.weights, layerParameter(layer, part));
  const biased = (part: string, product: Tensor) =>
    hasBias(spec, part)
      ? Add(product, Unsqueeze(parameter(inputs.weights, layerBias(layer, part)), [1]))
      : product;
  const widen = (part: string) => biased(part, FusedMatMul(weightOf(part), normed, { transB: true }));
  const gated = Mul(QuickGelu(widen("mlp.gate_proj")), widen("mlp.up_proj"));
  return Transpose(biased("mlp.down_proj", MatMul(weightOf("mlp.down_proj"), gated)), [0, 2, 1]);
}

/** A projection of a layer, with its bias and its adapter if the model has them. */
function project(
  spec: ModelSpec,
  layer: number,
  x: Tensor,
  { weights, lora, isWeightLeft, linear = floatLinear(weights, isWeightLeft) }: TransformerInputs,
  part: string,
): Tensor {
  const product = linear(x, layerParameter(layer, part));
  const biased = hasBias(spec, part) ? Add(product, parameter(weights, layerBias(layer, part))) : product;
  if (!lora?.targets.some((target) => LORA_TARGETS[target] === part)) return biased;
  const narrow = rightProduct(x, parameter(weights, adapterParameter(layer, part, "lora_A")));
  const b = parameter(weights, adapterParameter(layer, part, "lora_B"));
  return Add(biased, FusedMatMul(narrow, b, { transB: true, alpha: lora.alpha / lora.rank }));
}

function norm(spec: ModelSpec, x: Tensor, weight: Tensor): Tensor {
  return SimplifiedLayerNormalization(x, weight, spec.rmsNormEps);
}

function floatLinear(weights: WeightTensors, isWeightLeft = false): Linear {
  const product = isWeightLeft ? leftProduct : rightProduct;
  return (x, name) => product(x, parameter(weights, name));
}

/** x [..., in] times a weight of layout [out, in]. */
function rightProduct(x: Tensor, weight: Tensor): Tensor {
  return FusedMatMul(x, weight, { transB: true });
}

/**
 * The same product, computed as W x^T and transposed afterwards. A large weight is then read in place, row by row, while the
 * tokens stay in the processor's cache. As the right operand, onnxruntime would copy the weight into another order and read
 * it again for every six or twelve rows of the left operand.
 */
function leftProduct(x: Tensor, weight: Tensor): Tensor {
  return Transpose(FusedMatMul(weight, x, { transB: true }), [0, 2, 1]);
}

function parameter(weights: WeightTensors, name: string): Tensor {
  const tensor = weights[name];
  if (tensor === undefined) throw new ModelSpecError(name, `the parameter ${name} is missing`);
  return tensor;
}
