/** Migrations of the tracer's schema, append-only. */

import type { Migration } from "@hone/storage";

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "create-tables",
    sql: `
      create table runs (
        run_id text primary key,
        config_json text,
        accepted_at_ms bigint,
        first_sequence bigint not null,
        phase text not null default 'waiting',
        step integer not null default 0,
        total_steps integer not null default 0,
        version integer not null default 0,
        waiting_for text not null default '',
        waiting_since_ms bigint,
        progress jsonb,
        ended_at_ms bigint,
        end_reason text not null default '',
        checkpoint text not null default '',
        progress_sequence bigint not null default 0,
        state_revision bigint not null default 0,
        revision bigint not null default 0
      );
      create sequence run_revisions;

      create table refusals (
        request_sequence bigint primary key,
        time_ms bigint not null,
        problems jsonb not null
      );

      create table steps (
        run_id text not null,
        step integer not null,
        version integer not null,
        time_ms bigint not null,
        metrics jsonb not null,
        primary key (run_id, step)
      );

      create table evaluations (
        run_id text not null,
        version integer not null,
        mode text not null,
        episodes integer not null,
        time_ms bigint not null,
        metrics jsonb not null,
        primary key (run_id, version, mode)
      );

      create table rollouts (
        id bigserial not null unique,
        run_id text not null,
        slot text not null,
        split text not null,
        step integer not null,
        task integer not null,
        index integer not null,
        attempt integer not null,
        outcome text not null,
        reason text not null,
        reward double precision,
        success double precision,
        turns integer not null,
        sampled_tokens integer not null,
        total_tokens integer not null,
        duration_ms double precision not null,
        task_id text not null,
        trace_id text not null,
        stored_at_ms bigint not null,
        scored bytea not null,
        primary key (run_id, slot)
      );
      create index rollouts_by_step on rollouts (run_id, split, step, task, index);

      create table trainings (
        run_id text not null,
        slot text not null,
        advantage double precision not null,
        figures jsonb not null,
        stored_at_ms bigint not null,
        primary key (run_id, slot)
      );

      create table span_pieces (
        id bigserial primary key,
        trace_id text not null,
        span_count integer not null,
        data bytea not null
      );
      create index span_pieces_by_trace on span_pieces (trace_id);
    `,
  },
  {
    id: 2,
    name: "whose-turn-it-is",
    sql: "alter table runs add column waiting_owner text not null default ''",
  },
  {
    id: 3,
    name: "troubles-of-runs",
    sql: "alter table runs add column troubles jsonb",
  },
  {
    id: 4,
    name: "resumptions",
    sql: `
alter table runs add column resumption integer not null default 0;
alter table rollouts add column resumption integer not null default 0`,
  },
  {
    id: 5,
    name: "unread-rollouts",
    sql: "alter table runs add column unread_rollouts bigint not null default 0",
  },
  {
    id: 6,
    name: "removals",
    sql: `
      create table removals (
        run_id text not null,
        split text not null,
        step integer not null,
        rollouts bigint not null,
        primary key (run_id, split, step)
      );
      alter table rollouts add column spans_removed boolean not null default false;
      create index rollouts_by_trace on rollouts (trace_id) where trace_id <> ''`,
  },
  {
    // A column without a default changes no row. The indexes are built from the narrow part of the rows, as none has words yet:
    // seconds for 100,000 rollouts, while writes wait. The words of rollouts that are there are added bit by bit (index-words.ts).
    // Vacuum comes after every few thousand rollouts, as an index answers alone only for pages that it has seen.
    id: 7,
    name: "words-of-rollouts",
    sql: `
      alter table rollouts add column words tsvector;
      create index rollouts_by_words on rollouts using gin (words);
      create index rollouts_by_prompt on rollouts using gin (ts_filter(words, '{a}'));
      create index rollouts_by_answer on rollouts using gin (ts_filter(words, '{b}'));
      create index rollouts_by_tool on rollouts using gin (ts_filter(words, '{c}'));
      create index rollouts_by_judge on rollouts using gin (ts_filter(words, '{d}'));
      create index rollouts_listed on rollouts (run_id, split, step, id) include (outcome, sampled_tokens);
      create index rollouts_by_reward on rollouts (run_id, reward, id);
      create index rollouts_by_outcome on rollouts (run_id, outcome, id);
      create index rollouts_by_turns on rollouts (run_id, turns, id);
      create index rollouts_by_tokens on rollouts (run_id, sampled_tokens, id);
      create index rollouts_by_time on rollouts (run_id, duration_ms, id);
      create index rollouts_by_id on rollouts (run_id, id);
      alter table rollouts set (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
      create index rollouts_by_task on rollouts (run_id, left(task_id, 200), id) include (split, step, reward);
      create index trainings_by_advantage on trainings (run_id, advantage)`,
  },
  {
    id: 8,
    name: "notes",
    sql: `
      create table notes (
        id bigserial primary key,
        run_id text not null,
        slot text not null,
        turn integer,
        author text not null,
        text text not null,
        score double precision,
        created_at_ms bigint not null
      );
      create index notes_by_rollout on notes (run_id, slot, id)`,
  },
];
