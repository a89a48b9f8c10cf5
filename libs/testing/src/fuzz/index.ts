/** Bad input for fuzz tests of everything that reads input from outside: absurd values, bad messages, damaged bytes. */

export { absurdJson, absurdText } from "./absurd-values.ts";
export { badJson } from "./bad-json.ts";
export { anyMessage, badBodies, corrupted, damaged } from "./bad-messages.ts";
export { fuzz, withInputs } from "./settings.ts";
