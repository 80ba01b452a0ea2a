-- What people read is in UTC; compiling costs more than these statements.
select set_config('timezone', 'UTC', true), set_config('jit', 'off', true)
