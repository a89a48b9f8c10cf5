/** Real servers in temporary folders, matchers, and waiting for conditions. For tests only. */

export type { EventuallyOptions } from "./eventually.ts";
export { eventually } from "./eventually.ts";
export type { Halt, InspectorClient } from "./inspector-client.ts";
export { connectInspector } from "./inspector-client.ts";
export { isAlive } from "./is-alive.ts";
export type { Tolerance } from "./matchers.ts";
export { assertAllClose, assertClose } from "./matchers.ts";
export type { OtlpReceiver, ReceivedSpan } from "./otlp-receiver.ts";
export { startOtlpReceiver } from "./otlp-receiver.ts";
export type { RealVllm } from "./real-vllm.ts";
export { MODEL_VARIABLE, startRealVllm, VLLM_VARIABLE } from "./real-vllm.ts";
export type { TemporaryFolder, TestServerOptions } from "./servers.ts";
export { startNats, startPostgres, temporaryFolder } from "./servers.ts";
export type { SmallDisk } from "./small-disk.ts";
export { onSmallDisk } from "./small-disk.ts";
export { torchPython } from "./torch-python.ts";
