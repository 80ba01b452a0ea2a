-- The database's clock. Behind it, in the same transaction, nothing is compiled: that costs more
-- than a fetch runs.
select set_config('jit', 'off', true), clock_timestamp()
