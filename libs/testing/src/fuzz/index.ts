/** Bad input for every edge: absurd values, bad protobuf messages, damaged bytes. For tests only. */

export { absurdJson, absurdText } from "./absurd-values.ts";
export { badJson } from "./bad-json.ts";
export { anyMessage, badBodies, corrupted, damaged } from "./bad-messages.ts";
export { fuzz, withInputs } from "./settings.ts";
