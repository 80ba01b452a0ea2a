-- Drops the session's staging tables.
drop table stage, news;
reset plan_cache_mode
