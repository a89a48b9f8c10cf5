/** For tests of sessions: opens a session on a policy of the test. */

import { AttemptClock, Conversation, ModelSession, type Policy } from "@hone/agents";
import { contextOfTraceparent } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import type { OpenRole, OpenSession } from "./open-session.ts";
import type { SessionRequest } from "./session-call.ts";
import { type HostedSession, SessionHost } from "./session-host.ts";

export interface TestSession {
  readonly hosted: HostedSession;
  readonly session: OpenSession;
  readonly conversation: Conversation;
  readonly model: ModelSession;
}

export interface TestSessionOptions {
  readonly roles?: ReadonlyMap<string, OpenRole>;
  readonly takesRewards?: boolean;
  readonly maxTurns?: number;
  readonly maxContextTokens?: number;
  readonly seed?: number;
  readonly host?: SessionHost;
}

const DEADLINE_MS = 60_000;
const SAMPLING = { temperature: 1, topP: 1, topK: 0, maxNewTokens: 64 };

export function openTestSession(
  renderer: ChatRenderer,
  policy: Policy,
  options: TestSessionOptions = {},
): TestSession {
  const { host = new SessionHost("http://127.0.0.1:1"), seed = 1 } = options;
  const conversation = new Conversation(renderer);
  const clock = new AttemptClock(DEADLINE_MS, () => undefined);
  // Stopped, so that no deadline passes while a test makes its calls.
  clock.end();
  const model = new ModelSession({
    conversation,
    policy,
    clock,
    signal: new AbortController().signal,
    trace: contextOfTraceparent(undefined),
    model: "test",
    sessionId: "test/1",
    groupId: "test",
    sampling: SAMPLING,
    stopTokenIds: renderer.tokenizer.stopTokenIds,
    maxTurns: options.maxTurns ?? 1_000,
    maxContextTokens: options.maxContextTokens ?? 100_000,
    lowestVersion: 0,
    highestVersion: 0,
    seedOfTurn: (turn) => turn,
  });
  const hosted = host.open("run-1/train.1.0.0", {
    model,
    roles: options.roles ?? new Map(),
    takesRewards: options.takesRewards ?? false,
    seed,
    sampling: SAMPLING,
  });
  return { hosted, session: hosted.session, conversation, model };
}

/** A request with defaults for what a test does not specify. */
export function requestOf(
  messages: SessionRequest["messages"],
  changes: Partial<SessionRequest> = {},
): SessionRequest {
  return {
    model: "any",
    messages,
    tools: [],
    toolChoice: "auto",
    responseFormat: undefined,
    numAnswers: 1,
    maxNewTokens: undefined,
    sampling: {},
    stopTexts: [],
    seed: undefined,
    isStreamed: false,
    ...changes,
  };
}
