/** `hone chat [MODEL]`: chats with a run's policy, a checkpoint or a model of the hub. */

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
  description: "Chat with a run's policy, a checkpoint's folder or a model of the Hugging Face Hub",
  args: {
    model: {
      type: "positional",
      required: false,
      description:
        "A run (RUN or RUN@VERSION), a folder or a hub id such as owner/name; by default the only model that is loaded",
      valueHint: "MODEL",
    },
    system: { type: "string", description: "System message", valueHint: "TEXT" },
    "max-tokens": { type: "string", description: "Maximum number of tokens per answer", valueHint: "N" },
    temperature: {
      type: "string",
      description: "Sampling temperature, 1 by default; 0 always takes the most likely token",
      valueHint: "T",
    },
  },
  run: async (session, args) => {
    const maxTokens = readNumber("max-tokens", args["max-tokens"]);
    const temperature = readNumber("temperature", args.temperature);
    const talk = (gateway: GatewayAddress, model: string, shown = model) => {
      session.terminal.line(
        session.terminal.style("dim", `${shown}: type a message and press Enter; Ctrl-D ends the chat`),
      );
      return converse(session, { gateway, model, system: args.system, maxTokens, temperature });
    };
    const served = await servedModel(session, args.model);
    if (served !== undefined) {
      await talk(served.gateway, served.model);
      return 0;
    }
    if (args.model === undefined) {
      throw new UsageError(
        "no model is loaded here; name one: a run (RUN or RUN@VERSION), a folder or a hub id such as owner/name",
      );
    }
    const folders = { state: session.project.state, user: userFolder() };
    const { place, shown } = await findModel(args.model, folders);
    await using own = await startOwnGateway(session, place);
    await talk(own.address, own.model, shown);
    return 0;
  },
});

/** The model that the stack of this project serves; undefined if it serves none of this name. */
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
    throw new UsageError(`several models are loaded; name one of ${models.join(", ")}`);
  }
  const state = await modelState(gateway, wanted);
  if (state.kind === "loading") throw new UsageError(state.message);
  return state.kind === "loaded" ? { gateway, model: wanted } : undefined;
}

function readNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
  throw new UsageError(`--${name} ${text} is not a number that is 0 or more`);
}
