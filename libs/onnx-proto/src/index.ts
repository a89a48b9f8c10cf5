/** The ONNX messages that Hone writes, generated from proto/onnx.proto. */
export type { AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto } from "./gen/onnx_pb.ts";
export {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  StringStringEntryProtoSchema,
  TensorProto_DataLocation,
  TensorProto_DataType,
  TensorProtoSchema,
  TensorShapeProto_DimensionSchema,
  TensorShapeProtoSchema,
  TypeProto_TensorSchema,
  TypeProtoSchema,
  ValueInfoProtoSchema,
} from "./gen/onnx_pb.ts";
