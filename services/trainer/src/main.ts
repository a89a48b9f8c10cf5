/** The process of the service, which runs until a signal stops it. */

import { runService } from "@hone/service-kit";
import { trainerService } from "./service.ts";

await runService(trainerService);
