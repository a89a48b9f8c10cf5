/** What OpenTelemetry's conventions for messaging say of a message, for the span of who sends it or works on it. */

import { Attr, type Attributes, AttrValue } from "@hone/telemetry";
import type { DurableName } from "../streams/durables.ts";

export interface SentMessage {
  readonly subject: string;
  /** The subject with `*` in the place of its keys: names of it are few. */
  readonly template: string;
  /** Under which the stream knows it again. */
  readonly messageId: string;
}

/** Of the span that sends a message. */
export function sendAttributes({ subject, template, messageId }: SentMessage): Attributes {
  return {
    ...attributesOf(AttrValue.messagingSend, template),
    [Attr.messagingDestination]: subject,
    [Attr.messagingMessageId]: messageId,
  };
}

export interface ProcessedMessage extends Pick<SentMessage, "subject" | "template"> {
  /** The durable consumer that it came by. */
  readonly durable: DurableName;
}

/** Of the span that works on a message. */
export function processAttributes({ subject, template, durable }: ProcessedMessage): Attributes {
  return {
    ...attributesOf(AttrValue.messagingProcess, template),
    [Attr.messagingDestination]: subject,
    [Attr.messagingConsumer]: durable,
  };
}

function attributesOf(operation: string, template: string): Attributes {
  return {
    [Attr.messagingSystem]: AttrValue.messagingSystemNats,
    [Attr.messagingOperation]: operation,
    [Attr.messagingOperationType]: operation,
    [Attr.messagingDestinationTemplate]: template,
  };
}
