/** Starts the service and runs it until the process gets a signal to stop. */

import { installLeanRunContext } from "@hone/agents";
import { runService } from "@hone/service-kit";
import { agentRolloutService } from "./service.ts";

installLeanRunContext(process.env);
await runService(agentRolloutService);
