/** The process of the service: runs until it is told to stop. */

import { runService } from "@hone/service-kit";
import { tracerService } from "./service.ts";

await runService(tracerService);
