/** agent-rollout as a process. */

import { installLeanRunContext } from "@hone/agents";
import { runService } from "@hone/service-kit";
import { agentRolloutService } from "./service.ts";

installLeanRunContext(process.env);
await runService(agentRolloutService);
