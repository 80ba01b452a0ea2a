-- Gives how long the transactions of a run's epochs took up to the commit, in milliseconds.
select extract(epoch from committed_at - started_at)::float8 * 1000 from :"schema".epoch
