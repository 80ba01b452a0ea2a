-- Does what autovacuum would do in the midst of a run.
vacuum (analyze) :"schema".match
