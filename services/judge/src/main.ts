/** Starts the service and runs it until the process gets a signal to stop. */

import { runService } from "@hone/service-kit";
import { judgeService } from "./service.ts";

await runService(judgeService);
