/** The wire formats of sessions. To add one, add a file in this folder and a row here. */

import { CHAT_COMPLETIONS } from "./chat-completions.ts";
import type { Dialect } from "./dialect.ts";
import { MESSAGES } from "./messages.ts";
import { RESPONSES } from "./responses.ts";

export const DIALECTS: readonly Dialect[] = [CHAT_COMPLETIONS, MESSAGES, RESPONSES];
