/** `hone chat [MODEL]`: talk to a run's policy, to a checkpoint, or to a model of the hub. */

import { converse } from "../chat/converse.ts";
import { type GatewayAddress, listModels, modelState } from "../chat/gateway-client.ts";
import { startOwnGateway } from "../chat/own-gateway.ts";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { userFolder } from "../project.ts";
import { findModel } from "../run/find-model.ts";
import type { Session } from "../session.ts";
import { readStack } from "../stack/stack-file.ts";

export const chatCommand = honeCommand({
  name: "chat",
  description: "Talk to a run's policy, to a checkpoint's folder, or to a model of the Hugging Face hub",
  args: {
    model: {
      type: "positional",
      required: false,
      description:
        "A run (RUN or RUN@VERSION), a folder, or an id such as owner/name; by default the one model that is loaded",
      valueHint: "MODEL",
    },
    system: { type: "string", description: "Message that comes before the first one", valueHint: "TEXT" },
    "max-tokens": { type: "string", description: "Most tokens of an answer", valueHint: "N" },
    temperature: {
      type: "string",
      description: "0 takes the most likely tokens; 1 by default",
      valueHint: "T",
    },
  },
  run: async (session, args) => {
    const maxTokens = readNumber("max-tokens", args["max-tokens"]);
    const temperature = readNumber("temperature", args.temperature);
    const talk = (gateway: GatewayAddress, model: string, shown = model) => {
      session.terminal.line(session.terminal.style("dim", `${shown}: a line is a message, Ctrl-D ends`));
      return converse(session, { gateway, model, system: args.system, maxTokens, temperature });
    };
    const served = await servedModel(session, args.model);
    if (served !== undefined) {
      await talk(served.gateway, served.model);
      return 0;
    }
    if (args.model === undefined) {
      throw new UsageError(
        "Cannot choose a model as one must be named, or one be loaded: current value is none",
      );
    }
    const folders = { state: session.project.state, user: userFolder() };
    const { place, shown } = await findModel(args.model, folders);
    await using own = await startOwnGateway(session, place);
    await talk(own.address, own.model, shown);
    return 0;
  },
});

/** The model in the stack that runs here; undefined when there is none of this name. */
async function servedModel(
  { project }: Session,
  wanted: string | undefined,
): Promise<{ gateway: GatewayAddress; model: string } | undefined> {
  const stack = readStack(project);
  const port = stack?.services["inference-gateway"]?.httpPort;
  if (port === undefined) return undefined;
  const gateway = {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    apiKey: process.env.HONE_INFERENCE_API_KEY || stack?.token,
  };
  if (wanted === undefined) {
    const models = await listModels(gateway);
    if (models.length <= 1) return models[0] === undefined ? undefined : { gateway, model: models[0] };
    throw new UsageError(`Cannot choose a model as one must be named: current value is ${models.join(", ")}`);
  }
  const state = await modelState(gateway, wanted);
  if (state.kind === "loading") throw new UsageError(state.message);
  return state.kind === "loaded" ? { gateway, model: wanted } : undefined;
}

function readNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
  throw new UsageError(`Cannot chat as --${name} must be a number: current value is ${text}`);
}
