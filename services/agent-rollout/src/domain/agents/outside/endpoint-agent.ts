/**
 * The agent `endpoint`: an HTTP server that gets a request for each rollout,
 * `POST { task, session: { url, key, openaiBaseUrl, anthropicBaseUrl, model } }`, and answers when the rollout is over.
 *
 * Its answer is the result. After a failed connection, 408, 425, 429 and 5xx the attempt is repeated, as these are failures
 * outside the agent. With any other status the agent has failed.
 */

import {
  type AgentDefinition,
  type AgentResult,
  type AgentRollout,
  type BuildContext,
  InfrastructureError,
  postAndWait,
} from "@hone/agents";
import { type EndpointAgentConfig, endpointAgentSchema } from "@hone/config";
import { describeError, TerminalError } from "@hone/core";
import { traceHeaders } from "@hone/telemetry";
import { checkRoles, keysOf } from "./check-roles.ts";
import { MAX_RESULT_BYTES, outsideTaskOf, readOutsideResult } from "./outside-task.ts";

/** What building the agent gives to its rollouts. */
interface Endpoint {
  readonly url: string;
  readonly key: string | undefined;
}

const PASSING_STATUS: ReadonlySet<number> = new Set([408, 425, 429]);
const MAX_SHOWN_CHARACTERS = 300;

/** The server answered that the rollout failed. */
export class EndpointFailedError extends TerminalError {
  constructor(url: string, status: number, body: string) {
    super(
      "ENDPOINT_FAILED",
      `the agent's server ${url} answered with status ${status}: ${body.slice(0, MAX_SHOWN_CHARACTERS)}`,
    );
  }
}

export const endpointAgent: AgentDefinition<EndpointAgentConfig, Endpoint> = {
  configSchema: endpointAgentSchema,
  needsEnvironment: false,
  needsRow: true,
  buildGraph: buildEndpoint,
  run: askEndpoint,
};

/** @throws {InvalidInputError} where a key is not set, or may not be sent to its address. */
function buildEndpoint(config: EndpointAgentConfig, { outside }: BuildContext): Endpoint {
  const { endpoint, keyVariable, roles } = config;
  checkRoles(roles, outside);
  const key =
    keyVariable === undefined
      ? undefined
      : keysOf(outside).keyFor(keyVariable, endpoint, "agent.keyVariable");
  return { url: endpoint, key };
}

async function askEndpoint(
  { url, key }: Endpoint,
  rollout: AgentRollout<EndpointAgentConfig>,
): Promise<AgentResult> {
  const { config, signal } = rollout;
  const session = rollout.openSession({ roles: config.roles, takesRewards: config.rewards === "session" });
  const body = {
    task: outsideTaskOf(rollout),
    session: { ...session, openaiBaseUrl: `${session.url}/v1`, anthropicBaseUrl: session.url },
  };
  let answer: { readonly status: number; readonly text: string };
  try {
    answer = await postAndWait(url, {
      body: JSON.stringify(body),
      headers: { ...traceHeaders(), ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      maxAnswerBytes: MAX_RESULT_BYTES,
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new InfrastructureError("complete the rollout", `${url} does not answer`, describeError(cause), {
      cause,
    });
  }
  const { status, text } = answer;
  if (status >= 200 && status < 300) return readOutsideResult(text, `the answer of ${url}`);
  if (status >= 500 || PASSING_STATUS.has(status)) {
    const shown = text.slice(0, MAX_SHOWN_CHARACTERS);
    throw new InfrastructureError("complete the rollout", `${url} answered with status ${status}`, shown);
  }
  throw new EndpointFailedError(url, status, text);
}
