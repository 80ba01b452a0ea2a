-- Ends what scan_settings set, for look-ups in the same transaction; compiling them is no use either.
select set_config(name, reset_val, true)
from pg_settings
where name in ('work_mem', 'hash_mem_multiplier', 'enable_nestloop', 'enable_mergejoin')
