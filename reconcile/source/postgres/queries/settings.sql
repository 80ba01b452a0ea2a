-- Fixes, for the transaction of one page, every setting that the JSON text of a row depends on;
-- refuses rows that a policy would hide instead of leaving them out; and reads only.
select set_config('search_path', 'pg_catalog', true),
       set_config('TimeZone', 'UTC', true),
       set_config('DateStyle', 'ISO, MDY', true),
       set_config('IntervalStyle', 'postgres', true),
       set_config('bytea_output', 'hex', true),
       set_config('extra_float_digits', '1', true),
       set_config('row_security', 'off', true),
       set_config('statement_timeout', '30s', true),
       set_config('transaction_read_only', 'on', true)
