/** How much of the machine's memory this process holds. */

import { memoryUsage, resourceUsage } from "node:process";

export interface ProcessMemory {
  readonly residentBytes: number;
  /** The most that it has ever had. */
  readonly peakBytes: number;
}

const BYTES_PER_KIB = 1_024;

export function processMemory(): ProcessMemory {
  return { residentBytes: memoryUsage.rss(), peakBytes: resourceUsage().maxRSS * BYTES_PER_KIB };
}
