-- The number of the server's process that answers.
select pg_backend_pid()
