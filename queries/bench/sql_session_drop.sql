-- Drops the session's staging tables.
drop table stage, news
