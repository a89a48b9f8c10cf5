/**
 * Text to token ids and back, and conversations as token ids.
 *
 *     const tokenizer = await loadTokenizer("models/small");
 *     const { ids } = new ChatRenderer(tokenizer).render([{ role: "user", content: "Hello" }]);
 */

export type { ChatMessage, ChatTool, ChatToolCall } from "./chat-message.ts";
export type { RenderedAnswer, RenderedExtension, RenderedPrompt } from "./chat-renderer.ts";
export { ChatRenderer } from "./chat-renderer.ts";
export { ChatTemplateError, EncodingLimitError, TokenizerLoadError } from "./errors.ts";
export { loadTokenizer, makeTokenizer, TOKENIZER_FILES } from "./load-tokenizer.ts";
export { type Scanned, StopScanner } from "./stop-scanner.ts";
export { StreamingDecoder } from "./streaming-decoder.ts";
export { type TokenizedSample, tokenizeConversation } from "./tokenize-conversation.ts";
export type { TokenizerFiles } from "./tokenizer.ts";
export { Tokenizer } from "./tokenizer.ts";
export type { WordLanguage } from "./word-tokenizer.ts";
export { wordTokenizerFiles } from "./word-tokenizer.ts";
