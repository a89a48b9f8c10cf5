/** Element types: their ONNX codes, sizes and JavaScript arrays. */
import { TensorProto_DataType as Code } from "@hone/onnx-proto";

/** The array type of each element type. */
export interface DataByType {
  float32: Float32Array;
  float64: Float64Array;
  int32: Int32Array;
  int64: BigInt64Array;
  bool: Uint8Array;
  uint8: Uint8Array;
  int8: Int8Array;
}

/** Element type of a tensor. */
export type DType = keyof DataByType;

/** Data of a tensor of any element type. */
export type TensorData = DataByType[DType];

interface DTypeInfo {
  /** The value of `TensorProto.DataType`. */
  readonly code: number;
  readonly bytes: number;
  /** Makes an array of zeros. */
  readonly zeros: (length: number) => TensorData;
}

export const DTYPES: { readonly [T in DType]: DTypeInfo } = {
  float32: { code: Code.FLOAT, bytes: 4, zeros: (length) => new Float32Array(length) },
  float64: { code: Code.DOUBLE, bytes: 8, zeros: (length) => new Float64Array(length) },
  int32: { code: Code.INT32, bytes: 4, zeros: (length) => new Int32Array(length) },
  int64: { code: Code.INT64, bytes: 8, zeros: (length) => new BigInt64Array(length) },
  bool: { code: Code.BOOL, bytes: 1, zeros: (length) => new Uint8Array(length) },
  uint8: { code: Code.UINT8, bytes: 1, zeros: (length) => new Uint8Array(length) },
  int8: { code: Code.INT8, bytes: 1, zeros: (length) => new Int8Array(length) },
};

/** Converts numbers to the array of an element type; booleans are 0 and 1. */
export function toData(dtype: DType, values: readonly number[]): TensorData {
  const data = DTYPES[dtype].zeros(values.length);
  if (data instanceof BigInt64Array) {
    for (let i = 0; i < values.length; i++) data[i] = BigInt(values[i]!);
  } else {
    data.set(values);
  }
  return data;
}

/** Whether gradients flow through tensors of this type. */
export function isFloating(dtype: DType): boolean {
  return dtype === "float32" || dtype === "float64";
}
