-- How statements that compare whole tables are to be planned until the transaction ends: as hash
-- joins in memory that a million results fit into. The planner has no statistics of a generation
-- that is new, takes it for a few rows, and would compare each row with each, or sort; and compiling
-- the statements would take longer than running them.
select set_config('work_mem', '128MB', true), set_config('hash_mem_multiplier', '2', true),
    set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true)
