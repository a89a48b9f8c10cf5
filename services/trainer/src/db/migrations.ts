/** Migrations of the schema "trainer". They are append-only: a migration that was applied somewhere never changes. */

import type { Migration } from "@hone/storage";

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "create-runs-and-ledger",
    sql: `
create table runs (
  run_id text primary key,
  request_sequence bigint not null unique,
  name text not null,
  stage text not null check (stage in ('admitting', 'active', 'completed', 'failed', 'cancelled')),
  config_json text not null,
  version integer check (version >= 0),
  state_folder text not null default '',
  state_digest text not null default '',
  next_sequence bigint not null default 1,
  owner text,
  epoch bigint not null default 0,
  lease_until timestamptz,
  is_cancel_requested boolean not null default false,
  is_pause_requested boolean not null default false,
  end_reason text not null default '',
  created_at timestamptz not null default now(),
  ended_at timestamptz
);
create index runs_unfinished on runs (stage) where stage in ('admitting', 'active');

create table ledger (
  run_id text not null references runs on delete cascade,
  slot text not null,
  version integer not null,
  attempt integer not null,
  outcome text not null,
  sample_count integer not null,
  sampled_tokens integer not null,
  lowest_version integer,
  highest_version integer,
  reward double precision not null,
  advantage double precision not null,
  sequence bigint not null,
  state_digest text not null,
  primary key (run_id, slot)
);
create index ledger_by_version on ledger (run_id, version);

create table steps (
  run_id text not null references runs on delete cascade,
  version integer not null,
  epoch bigint not null,
  state_folder text not null,
  state_digest text not null,
  metrics jsonb not null,
  committed_at timestamptz not null default now(),
  primary key (run_id, version)
);

create table evaluations (
  run_id text not null references runs on delete cascade,
  version integer not null,
  mode text not null check (mode in ('sampled', 'greedy')),
  episodes integer not null,
  metrics jsonb not null,
  finished_at timestamptz not null default now(),
  primary key (run_id, version, mode)
);`,
  },
  {
    id: 2,
    name: "count-tenures",
    sql: "alter table runs add column tenures integer not null default 0",
  },
  {
    id: 3,
    name: "states-to-recover-from",
    sql: `
alter table runs
  add column recovery_folder text not null default '',
  add column recovery_digest text not null default '',
  add column recovery_version integer check (recovery_version >= 0),
  add column warm_updates integer not null default 0 check (warm_updates >= 0)`,
  },
  {
    id: 4,
    name: "advantages-of-turns",
    sql: "alter table ledger add column turn_advantages jsonb",
  },
  {
    id: 5,
    name: "visits-of-tasks",
    sql: `
create table visits (
  run_id text not null references runs on delete cascade,
  step integer not null,
  task integer not null,
  task_id text not null,
  success double precision,
  next_cursor bigint not null,
  primary key (run_id, step, task)
)`,
  },
  {
    id: 6,
    name: "troubles-of-steps-and-evaluations",
    sql: `
alter table steps add column troubles jsonb;
alter table evaluations add column troubles jsonb`,
  },
  {
    id: 7,
    name: "arithmetic-of-versions",
    sql: "alter table runs add column arithmetic text not null default ''",
  },
  {
    id: 8,
    name: "files-of-states",
    sql: `
alter table runs
  add column state_files jsonb not null default '{}',
  add column recovery_files jsonb not null default '{}'`,
  },
  {
    id: 9,
    name: "resumptions-of-runs",
    sql: "alter table runs add column resumptions integer not null default 0 check (resumptions >= 0)",
  },
  {
    id: 10,
    name: "advantages-of-tokens",
    sql: "alter table ledger add column token_advantages bytea",
  },
  {
    id: 11,
    name: "returns-of-tokens",
    sql: "alter table ledger add column token_returns bytea",
  },
  {
    id: 12,
    name: "groups-of-asynchronous-runs",
    sql: `
create table groups (
  run_id text not null references runs on delete cascade,
  step integer not null,
  task integer not null,
  cursor bigint not null,
  next_cursor bigint not null,
  trained_by integer,
  complete_at bigint,
  is_given_up boolean not null default false,
  primary key (run_id, step, task)
);
create index groups_open on groups (run_id) where trained_by is null and not is_given_up`,
  },
  {
    id: 13,
    name: "roles-of-rollouts",
    sql: `
alter table ledger
  add column role text not null default '',
  drop constraint ledger_pkey,
  add primary key (run_id, slot, role)`,
  },
  {
    id: 14,
    name: "chain-of-steps",
    sql: `
alter table steps add column chain jsonb;
alter table ledger
  add column prompt_digest text,
  add column tokens_digest text,
  add column logprobs_digest text`,
  },
  {
    id: 15,
    name: "records-of-trained-tokens",
    sql: `
create table gradients (
  run_id text not null references runs on delete cascade,
  version integer not null,
  summary jsonb not null,
  bytes bigint not null,
  primary key (run_id, version)
);
create table token_records (
  run_id text not null references runs on delete cascade,
  slot text not null,
  version integer not null,
  record bytea not null,
  primary key (run_id, slot)
);
create index token_records_by_version on token_records (run_id, version)`,
  },
  {
    id: 16,
    name: "records-of-roles-and-policies",
    sql: `
alter table gradients
  add column policy text not null default '',
  drop constraint gradients_pkey,
  add primary key (run_id, version, policy);
alter table token_records
  add column role text not null default '',
  drop constraint token_records_pkey,
  add primary key (run_id, slot, role)`,
  },
];
