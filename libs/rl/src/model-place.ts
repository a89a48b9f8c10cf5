/** Where the weights of a pretrained model are, as every key of a run file names them that has a model. */

import { z } from "zod";

export const modelPlaceShape = {
  /** A folder in the Hugging Face layout, absolute or below the project folder, or an id of the Hugging Face hub. */
  path: z.string().min(1).max(1_024),
  /** Branch, tag or commit of the repository on the hub. */
  revision: z.string().min(1).max(255).default("main"),
};
