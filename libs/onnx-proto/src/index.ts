/** ONNX messages generated from proto/onnx.proto by generate.sh; nothing else. */
export * from "./onnx_pb.ts";
