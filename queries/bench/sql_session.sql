-- Creates the session's staging tables: the batch, and the events of it that are news. Plans are
-- made for the statistics of each epoch.
set plan_cache_mode = force_custom_plan;
create temporary table stage (
    number bigint, side text collate "C", id text collate "C", revision bigint,
    key text collate "C", event_time timestamptz,
    attributes json, position bigint
) on commit delete rows;
create temporary table news (
    side text collate "C", id text collate "C", revision bigint,
    key text collate "C", event_time timestamptz, attributes json,
    horizon timestamptz, replaces boolean
) on commit delete rows
