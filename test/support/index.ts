/** Starts whole stacks and runs on them, for the tests here and for the bench. */

export { type FinishedRun, type FollowOptions, publishRequest, refusalOf, runToEnd } from "./follow.ts";
export { type LakeRunOptions, lakeRun } from "./lake-run.ts";
export { type Ended, type StackOptions, startStack, type TestStack } from "./stack.ts";
