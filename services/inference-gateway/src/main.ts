/** Runs the service as a process until it gets a signal to stop. */

import { runService } from "@hone/service-kit";
import { inferenceGatewayService } from "./service.ts";

await runService(inferenceGatewayService);
