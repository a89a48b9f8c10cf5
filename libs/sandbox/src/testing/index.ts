/** For tests: wheels, and a container runtime that isolates nothing. */

export { type CreateBody, type FakeContainer, FakeEngine } from "./fake-engine.ts";
export { makeWheel, type WheelParts } from "./make-wheel.ts";
