-- Of a generation that has just been built the planner knows nothing, and would compare each result
-- with each: the differences are found by hash joins. Until the transaction ends.
select
    set_config('enable_nestloop', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true),
    set_config('work_mem', '128MB', true)
