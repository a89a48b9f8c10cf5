/** GET /v1/models and GET /v1/models/:model. */

import { Hono } from "hono";
import type { ListedModel, ServedModels } from "../domain/serving/served-models.ts";

export function modelRoutes(models: ServedModels): Hono {
  const app = new Hono();
  app.get("/models", (c) => c.json({ object: "list", data: models.list().map(modelBody) }));
  // Names of models may hold slashes.
  app.get("/models/:model{.+}", (c) => c.json(modelBody(models.find(c.req.param("model")))));
  return app;
}

function modelBody({ id, version, loadedAtMs }: ListedModel) {
  return { id, object: "model", created: Math.floor(loadedAtMs / 1_000), owned_by: "hone", version };
}
