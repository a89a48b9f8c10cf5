/** Attributes by OpenTelemetry's conventions for messaging, for spans that send or process a message. */

import { Attr, type Attributes, AttrValue } from "@hone/telemetry";
import type { DurableName } from "../streams/durables.ts";

export interface SentMessage {
  readonly subject: string;
  /** The subject with `*` in the place of its keys, so that there are few of them. */
  readonly template: string;
  /** The id by which the stream recognises a duplicate. */
  readonly messageId: string;
}

/** Attributes of the span that sends a message. */
export function sendAttributes({ subject, template, messageId }: SentMessage): Attributes {
  return {
    ...attributesOf(AttrValue.messagingSend, template),
    [Attr.messagingDestination]: subject,
    [Attr.messagingMessageId]: messageId,
  };
}

export interface ProcessedMessage extends Pick<SentMessage, "subject" | "template"> {
  /** The durable consumer that delivered it. */
  readonly durable: DurableName;
}

/** Attributes of the span that processes a message. */
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
