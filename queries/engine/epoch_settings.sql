-- Settings for the epoch's transaction alone. Compiling costs more than these statements run. The
-- time limit lets the server end the transaction of a client that stopped in its midst; one that
-- the user has set stands.
select
    set_config('jit', 'off', true),
    set_config('idle_in_transaction_session_timeout', case
        when current_setting('idle_in_transaction_session_timeout') = '0' then '60s'
        else current_setting('idle_in_transaction_session_timeout')
    end, true)
