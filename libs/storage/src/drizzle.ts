/**
 * drizzle, loaded as CommonJS.
 *
 * Its package.json is 180 kB long, and Node's loader for ES modules parses it again for each of its 114 files, which takes
 * 0.4 s and 60 MB in each process that uses the database. The loader for CommonJS reads it once. So values are imported from
 * here; types may be imported from drizzle itself.
 */

import { createRequire } from "node:module";
import type * as Core from "drizzle-orm";
import type * as Pg from "drizzle-orm/pg-core";
import type * as PostgresJs from "drizzle-orm/postgres-js";

const require = createRequire(import.meta.url);

export const {
  and,
  asc,
  desc,
  DrizzleQueryError,
  eq,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  max,
  ne,
  notInArray,
  lte,
  or,
  sql,
}: typeof Core = require("drizzle-orm");
export const {
  bigint,
  bigserial,
  boolean,
  customType,
  doublePrecision,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
}: typeof Pg = require("drizzle-orm/pg-core");
export const { drizzle }: typeof PostgresJs = require("drizzle-orm/postgres-js");
